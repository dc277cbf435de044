import { describe, expect, it } from "vitest";
import type { Job } from "./handler/handler.js";
import { begin, eachWithServer, gate, isTake, running, server, stopped } from "./testing/worker-fixture.js";

eachWithServer();

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

  it("passes everything that came with a job to the handler, and nothing else", async () => {
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

  it("polls again at once after an empty answer, and after a pause when the server fails", async () => {
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

  it("runs a job only once if it is handed out again while it runs", async () => {
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

const cycle: unknown[] = [];
cycle.push(cycle);

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
      value: cycle,
      reason: /can't be written as JSON: .*circular/,
    },
  ])("clearly that $it is not JSON", async ({ value, reason }) => {
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

  it("each separately if the server has no batched call", async () => {
    const held = gate();
    server.answer("job-done-batch", { status: 404 });
    begin((_, job) => held.opened.then(() => job.id), { concurrency: 2 });
    server.give({ id: "a", input: {} }, { id: "b", input: {} });
    await server.seen((call) => call.name === "job-stop");
    held.open();
    expect([await server.result("a"), await server.result("b")]).toEqual([{ output: "a" }, { output: "b" }]);
  });

  it("repeatedly while the server can't take the result, which counts as in progress", async () => {
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
