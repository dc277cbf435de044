import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Handler, Job, ServeOptions } from "./handler.js";
import { readSettings } from "./settings.js";
import { StubServer } from "./stub-server.js";
import { version } from "./version.js";
import { type Ending, Worker } from "./worker.js";

let server: StubServer;
let worker: Worker;
let running: Promise<Ending>;

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const isTake = (call: { name: string }) => call.name.startsWith("job-take");

function begin(handler: Handler, options: ServeOptions = {}, env: Record<string, string> = {}): void {
  worker = new Worker(handler, options, readSettings(server.environment(env)), () => quiet);
  running = worker.run();
}

/** A promise with its ends outside: handlers wait on it for as long as a test wants. */
function gate(): { open: () => void; opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open: () => open(), opened };
}

/** Resolves when a job is told to stop. */
const stopped = (job: Job) => new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));

beforeEach(async () => {
  server = await new StubServer().start();
});

afterEach(async () => {
  worker.stopJobs();
  server.releaseTake();
  await running;
  await server.stop();
  expect(server.breaches).toEqual([]);
});

describe("a worker takes jobs", () => {
  it("one by one, and reports what the handler returns", async () => {
    begin((input) => ({ doubled: input.number * 2 }));
    server.give({ id: "a", input: { number: 1 } }, { id: "b", input: { number: 2 } });
    expect(await server.result("a")).toEqual({ output: { doubled: 2 } });
    expect(await server.result("b")).toEqual({ output: { doubled: 4 } });
    expect(server.named("job-done").map((call) => call.query.get("isStream"))).toEqual(["false", "false"]);
    expect(server.named("job-take").every((call) => call.query.get("job_in_progress") === "0")).toBe(true);
  });

  it("many at a time, with as many slots as are free", async () => {
    const gates = { a: gate(), b: gate(), c: gate() };
    begin((_, job) => gates[job.id as "a"].opened, { concurrency: 3 });
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    const [first, second] = [
      await server.seen(isTake),
      await server.seen((call) => call.query.get("batch_size") === "1"),
    ];
    expect([first.name, first.query.get("batch_size"), first.query.get("job_in_progress")]).toEqual([
      "job-take-batch",
      "3",
      "0",
    ]);
    expect(second.query.get("job_in_progress")).toBe("1");
    server.give({ id: "c", input: {} });
    for (const each of Object.values(gates)) each.open();
    await Promise.all(["a", "b", "c"].map((id) => server.result(id)));
  });

  it("with a concurrency that a function adapts before each take", async () => {
    const seen: number[] = [];
    const adapt = (current: number) => {
      seen.push(current);
      return current + 1;
    };
    begin((_, job) => stopped(job), { concurrency: adapt });
    server.give({ id: "a", input: {} });
    const grown = await server.seen((call) => isTake(call) && call.query.get("job_in_progress") === "1");
    expect([grown.query.get("batch_size"), seen]).toEqual(["2", [1, 2]]);
  });

  it("hands the handler all that came with a job, and nothing that didn't", async () => {
    let jobs: Job[] = [];
    begin((_, job) => void jobs.push(job));
    server.give({ id: "a", input: {}, webhook: "https://me/", s3Config: { bucketName: "b" }, policy: { ttl: 10_000 } });
    server.give({ id: "b", input: {} });
    await server.result("b");
    expect(jobs[0]).toMatchObject({
      id: "a",
      webhook: "https://me/",
      s3Config: { bucketName: "b" },
      policy: { ttl: 10_000 },
    });
    expect(Object.keys(jobs[1] as Job)).not.toContain("webhook");
    jobs = [];
  });

  it("asks again at once after an empty answer, and after a pause when the server fails", async () => {
    server.answer("job-take", { status: 204 }, { status: 500 }, { status: 429 }, "hang up", {
      status: 200,
      text: "[1",
    });
    begin(() => "done");
    server.give({ id: "a", input: {} });
    await server.result("a");
    expect(
      server
        .named("job-take")
        .map((call) => call.status)
        .slice(0, 6),
    ).toEqual([204, 500, 429, 0, 200, 200]);
  });

  it("keeps trying while the server is away, and goes on when it is back", async () => {
    await server.stop();
    begin(() => "done");
    await server.start();
    server.give({ id: "a", input: {} });
    expect(await server.result("a")).toEqual({ output: "done" });
  });

  it("runs a job only once that is given again while it runs", async () => {
    const held = gate();
    let runs = 0;
    begin(
      () => {
        runs += 1;
        return held.opened;
      },
      { concurrency: 2 },
    );
    server.give({ id: "a", input: {} });
    await server.seen((call) => call.query.get("batch_size") === "1");
    server.give({ id: "a", input: {} });
    await server.seen((call) => isTake(call) && server.calls.filter(isTake).length >= 3);
    held.open();
    await server.result("a");
    expect(runs).toBe(1);
  });
});

describe("a worker reports", () => {
  it.each([
    { it: "an asynchronous value", handler: async () => [1, 2], body: { output: [1, 2] } },
    { it: "nothing as null", handler: () => undefined, body: { output: null } },
    { it: "not-a-number as null", handler: () => Number.NaN, body: { output: null } },
  ])("$it", async ({ handler, body }) => {
    begin(handler);
    server.give({ id: "a", input: {} });
    expect(await server.result("a")).toEqual(body);
  });

  it.each([
    { it: "a BigInt", value: { n: 1n }, reason: /^Error: the handler's output can't be written as JSON: .*BigInt/ },
    { it: "a function", value: () => 1, reason: /can't be written as JSON: it is a function/ },
    {
      it: "a cycle",
      value: Object.assign([] as unknown[], { 0: null }),
      reason: /can't be written as JSON: .*circular/,
    },
  ])("in words that $it is no JSON", async ({ value, reason }) => {
    if (Array.isArray(value)) value[0] = value;
    begin(() => value);
    server.give({ id: "a", input: {} });
    expect((await server.result("a")).error).toMatch(reason);
  });

  it("a thrown error as name, message and stack, within 4 KB", async () => {
    begin((input) => {
      throw new RangeError(input.message);
    });
    server.give({ id: "a", input: { message: "too far" } }, { id: "b", input: { message: "é".repeat(9_000) } });
    expect((await server.result("a")).error).toMatch(/^RangeError: too far\n\s+at .*worker\.test\.ts/);
    const { error } = await server.result("b");
    expect(Buffer.byteLength(error)).toBeLessThanOrEqual(4096);
    expect(error).not.toContain("\uFFFD");
  });

  it("results of one turn in one call", async () => {
    const held = gate();
    begin((_, job) => held.opened.then(() => job.id), { concurrency: 2 });
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    await server.seen((call) => call.name === "job-stop");
    held.open();
    await server.result("b");
    expect(server.named("job-done-batch").map((call) => call.body)).toEqual([
      [
        { id: "a", output: "a" },
        { id: "b", output: "b" },
      ],
    ]);
  });

  it("each by itself where the server has no gathered call", async () => {
    const held = gate();
    server.answer("job-done-batch", { status: 404 });
    begin((_, job) => held.opened.then(() => job.id), { concurrency: 2 });
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    await server.seen((call) => call.name === "job-stop");
    held.open();
    expect([await server.result("a"), await server.result("b")]).toEqual([{ output: "a" }, { output: "b" }]);
  });

  it("again and again while the server can't take the result, which counts as in progress", async () => {
    server.answer("job-done", { status: 503, headers: { "retry-after": "1" } }, "hang up", { status: 500 });
    begin(() => "kept");
    server.give({ id: "a", input: {} });
    const take = await server.seen((call) => isTake(call) && call.query.get("job_in_progress") === "1");
    const ping = await server.seen((call) => call.name === "ping" && call.query.has("job_id"));
    expect([take.name, ping.query.get("job_id")]).toEqual(["job-take", "a"]);
    expect(await server.result("a")).toEqual({ output: "kept" });
    expect(new Set(server.named("job-done").map((call) => call.text)).size).toBe(1);
  });

  it("a result that was made while the server was away", async () => {
    const held = gate();
    begin(() => held.opened.then(() => "kept"));
    server.give({ id: "a", input: {} });
    await server.seen((call) => call.name === "job-stop");
    await server.stop();
    held.open();
    await server.start();
    expect(await server.result("a")).toEqual({ output: "kept" });
  });

  it("drops a result that the server refuses for good, and goes on", async () => {
    server.answer("job-done", { status: 400 });
    begin((_, job) => job.id);
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    await server.result("b");
    expect(server.named("job-done").map((call) => call.jobId)).toEqual(["a", "b"]);
  });

  it("progress, the newest value at least, before the end", async () => {
    begin(async (_, job) => {
      void job.progress(1);
      void job.progress(2);
      await job.progress({ part: 3 });
      return "done";
    });
    server.give({ id: "a", input: {} });
    await server.result("a");
    expect(server.named("job-done").map((call) => call.body)).toEqual([
      { status: "IN_PROGRESS", output: 1 },
      { status: "IN_PROGRESS", output: { part: 3 } },
      { output: "done" },
    ]);
  });

  it("that it wants to be replaced, and then takes no more jobs", async () => {
    begin((_, job) => {
      job.refreshWorker();
      return "last";
    });
    server.give({ id: "a", input: {} });
    expect(await server.result("a")).toEqual({ output: "last", stopPod: true });
    expect(await running).toBe("stopped");
  });
});

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

  it("and adds the list of chunks where it is asked to", async () => {
    begin(
      function* () {
        yield* ["a", "b"];
      },
      { aggregate: true },
    );
    server.give({ id: "a", input: {} });
    expect(await server.result("a")).toEqual({ output: ["a", "b"] });
  });

  it("a failed chunk again with the very same bytes, before the next", async () => {
    server.answer("job-stream", { status: 200 }, { status: 503 }, "hang up");
    begin(function* () {
      yield* [1, 2, 3];
    });
    server.give({ id: "a", input: {} });
    await server.result("a");
    expect(server.named("job-stream").map((call) => call.text)).toEqual([1, 2, 2, 2, 3].map((n) => `{"output":${n}}`));
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
  it("that the server names, frees its slot and says a last word", async () => {
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
  it("with the jobs it holds, and without any when it holds none", async () => {
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

  it("with the version of its package", () => {
    const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
    expect(version).toBe(manifest.version);
  });
});

describe("a worker ends", () => {
  it("when it is told to, after the job that runs", async () => {
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

  it("after a job that its last poll still brought", async () => {
    begin(() => "done");
    await server.seen(isTake);
    worker.stop();
    server.give({ id: "a", input: {} });
    expect(await running).toBe("stopped");
    expect(await server.result("a")).toEqual({ output: "done" });
  });

  it("hanging up on a server that leaves the poll open", async () => {
    begin(() => "done");
    await server.seen(isTake);
    worker.stop();
    expect(await running).toBe("stopped");
  });

  it.each(["job-take", "job-done"])("and drops what it holds when %s says that it is unknown", async (name) => {
    server.answer(name, { status: 401 });
    begin(() => "done");
    server.give({ id: "a", input: {} });
    expect(await running).toBe("disowned");
  });

  it("when two pings in a row were refused, though its handler never does", async () => {
    server.answer("ping", { status: 401 }, { status: 401 });
    begin(() => new Promise(() => {}));
    server.give({ id: "a", input: {} });
    expect(await running).toBe("disowned");
  });
});
