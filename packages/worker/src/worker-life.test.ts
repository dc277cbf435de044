import { describe, expect, it } from "vitest";
import type { Handler } from "./handler/handler.js";
import { begin, eachWithServer, gate, isTake, running, server, stopped, worker } from "./testing/worker-fixture.js";
import { version } from "./version.js";

eachWithServer();

describe("a worker streams", () => {
  const chunks = () =>
    server
      .named("job-stream")
      .filter((call) => call.status === 200)
      .map((call) => call.body.output);

  it.each<{ it: string; handler: Handler }>([
    {
      it: "a generator",
      handler: function* () {
        yield* [1, { two: 2 }, "three"];
      },
    },
    {
      it: "an async generator",
      handler: async function* () {
        yield* [1, { two: 2 }, "three"];
      },
    },
    {
      it: "an async iterable that is returned",
      handler: async () =>
        new ReadableStream({
          start(controller) {
            for (const each of [1, { two: 2 }, "three"]) controller.enqueue(each);
            controller.close();
          },
        }),
    },
  ])("$it, in order", async ({ handler }) => {
    begin(handler);
    server.give({ id: "a", input: {} });
    expect(await server.result("a")).toEqual({ output: [] });
    expect(chunks()).toEqual([1, { two: 2 }, "three"]);
    expect(server.named("job-done")[0]?.query.get("isStream")).toBe("true");
  });

  it("and adds the list of chunks on request", async () => {
    begin(
      function* () {
        yield* ["a", "b"];
      },
      { aggregate: true },
    );
    server.give({ id: "a", input: {} });
    expect(await server.result("a")).toEqual({ output: ["a", "b"] });
  });

  it("a failed chunk again with the same bytes and the same name, before the next", async () => {
    server.answer("job-stream", { status: 200 }, { status: 503 }, "hang up");
    begin(function* () {
      yield* [1, 2, 3];
    });
    server.give({ id: "a", input: {} });
    await server.result("a");
    const calls = server.named("job-stream");
    expect(calls.map((call) => call.text)).toEqual([1, 2, 2, 2, 3].map((n) => `{"output":${n}}`));
    const names = calls.map((call) => call.query.get("chunk"));
    expect(names.map((name) => names.indexOf(name))).toEqual([0, 1, 1, 1, 4]);
  });

  it("under names that no other run of the job has", async () => {
    begin(function* () {
      yield* ["a", "a"];
    });
    const names = async () => {
      server.give({ id: "a", input: {} });
      const before = server.named("job-done").length;
      await server.seen(() => server.named("job-done").length > before);
      return server.named("job-stream").map((call) => call.query.get("chunk"));
    };
    await names();
    expect(new Set(await names()).size).toBe(4);
  });

  it("until the generator throws: the error follows the chunks", async () => {
    begin(function* () {
      yield 1;
      throw new Error("out of words");
    });
    server.give({ id: "a", input: {} });
    expect((await server.result("a")).error).toMatch(/^Error: out of words/);
    expect(server.calls.filter((call) => /stream|done/.test(call.name)).map((call) => call.name)).toEqual([
      "job-stream",
      "job-done",
    ]);
  });

  it("no further than 64 chunks ahead of the server", async () => {
    let made = 0;
    server.answer("job-stream", { status: 503, headers: { "retry-after": "60" } });
    begin(function* () {
      for (; made < 1_000; made++) yield made;
    });
    server.give({ id: "a", input: {} });
    await server.seen((call) => call.name === "ping");
    expect(made).toBeLessThanOrEqual(64);
  });
});

describe("a worker stops a job", () => {
  it("that the server names, frees its slot and reports the result", async () => {
    const isRunning = gate();
    begin(async (_, job) => {
      if (job.id === "b") isRunning.open();
      await stopped(job);
      throw new Error("gave up");
    });
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    await server.seen((call) => call.name === "job-stop");
    server.stopJobs("unknown", "a");
    expect(await server.result("a")).toEqual({ error: "stopped" });
    await isRunning.opened;
    server.stopJobs("b");
    expect(await server.result("b")).toEqual({ error: "stopped" });
  });

  it("and lets a generator clean up, sending no further chunks", async () => {
    let isClean = false;
    begin(async function* (_, job) {
      try {
        yield 1;
        await stopped(job);
        yield 2;
      } finally {
        isClean = true;
      }
    });
    server.give({ id: "a", input: {} });
    await server.seen((call) => call.name === "job-stream");
    server.stopJobs("a");
    expect(await server.result("a")).toEqual({ error: "stopped" });
    expect([isClean, server.named("job-stream").length]).toEqual([true, 1]);
  });
});

describe("a worker pings", () => {
  it("with the jobs it holds, or with no jobs when it holds none", async () => {
    const held = gate();
    begin(() => held.opened, { concurrency: 2 });
    const idle = await server.seen((call) => call.name === "ping");
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    const busy = await server.seen((call) => call.name === "ping" && call.query.has("job_id"));
    held.open();
    expect([idle.query.has("job_id"), busy.query.get("job_id"), busy.query.get("runpod_version")]).toEqual([
      false,
      "a,b",
      `millrace-${version}`,
    ]);
  });
});

describe("a worker ends", () => {
  it("when it is told to, after the running job", async () => {
    const held = gate();
    begin(() => held.opened.then(() => "done"), { concurrency: 2 });
    server.give({ id: "a", input: {} });
    await server.seen((call) => call.query.get("batch_size") === "1");
    worker.stop();
    server.releaseTake();
    held.open();
    expect(await running).toBe("stopped");
    expect(await server.result("a")).toEqual({ output: "done" });
  });

  it("after a job that its last poll still returned", async () => {
    begin(() => "done");
    await server.seen(isTake);
    worker.stop();
    server.give({ id: "a", input: {} });
    expect(await running).toBe("stopped");
    expect(await server.result("a")).toEqual({ output: "done" });
  });

  it("disconnecting from a server that leaves the poll open", async () => {
    begin(() => "done");
    await server.seen(isTake);
    worker.stop();
    expect(await running).toBe("stopped");
  });

  it.each(["job-take", "job-done"])("and drops its jobs when %s says that it is unknown", async (name) => {
    server.answer(name, { status: 401 });
    begin(() => "done");
    server.give({ id: "a", input: {} });
    expect(await running).toBe("disowned");
  });

  it("when two pings in a row were refused, even if its handler never ends", async () => {
    server.answer("ping", { status: 401 }, { status: 401 });
    begin(() => new Promise(() => {}));
    server.give({ id: "a", input: {} });
    expect(await running).toBe("disowned");
  });
});
