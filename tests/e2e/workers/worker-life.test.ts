import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, journal, startServer, type TestServer, until } from "../../harness.js";
import { type Ending, makeFolder, makeRunning } from "../handlers.js";
import { allWorkersOf, coldStartsOf, complete, inState, phasesOf, save, workerOf, workersOf } from "../life.js";
import { makePuppets } from "../puppet.js";
import { type Body, expectRefusal, healthOf, reach, statusOf, submit } from "../wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
});
afterAll(() => server?.end());

/** A gate file for a job: opening it lets the job end. */
function gateIn(folder: string, name = "gate") {
  const path = join(folder, name);
  return { path, open: () => writeFileSync(path, "") };
}

describe.concurrent("a worker's life can be read:", () => {
  it("each state with its beginning, and its timeline in order", async (test) => {
    const endpoint = await makeRunning(test, server, { idleTimeout: 2, workersMax: 1 });
    const gate = gateIn(makeFolder(test));
    const askedAt = Date.now();
    const job = await submit(server, endpoint, { gate: gate.path, echo: 1 });
    await reach(server, endpoint, job, "IN_PROGRESS");
    const [running] = await workersOf(server, endpoint);
    expect(running).toMatchObject({
      endpointId: endpoint,
      version: 1,
      desiredStatus: "RUNNING",
      state: "running",
      jobs: 1,
    });
    expect(Date.parse(running.since)).toBeGreaterThanOrEqual(askedAt - 1);
    expect(Date.parse(running.since)).toBeLessThanOrEqual(Date.now() + 1);
    gate.open();
    await reach(server, endpoint, job, "COMPLETED");
    // The worker's first output is written at the same time as the job's end.
    const idle = await until(async () => {
      const now = await inState(server, endpoint, "idle", { id: running.id });
      return phasesOf(now).includes("first output") && now;
    });
    expect(Date.parse(idle.since)).toBeGreaterThanOrEqual(Date.parse(running.since));
    const steps = ["asked for", "image ready", "process started", "first take", "first output"];
    expect(phasesOf(idle).filter((phase) => phase !== "image ready")).toEqual(
      steps.filter((phase) => phase !== "image ready"),
    );
    const times = idle.timeline.map(({ at }: Body) => Date.parse(at));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(idle.timeline.map(({ afterMs }: Body) => afterMs)).toEqual(times.map((at: number) => at - times[0]));
    expect(await workerOf(server, running.id)).toEqual(idle);
  });

  it("the steps of its start add up to the total, and its end names the cause", async (test) => {
    const endpoint = await makeRunning(test, server, { idleTimeout: 1, workersMax: 1 });
    const { workerId } = await complete(server, endpoint);
    const ended = await inState(server, endpoint, "ended", { id: workerId });
    expect(await workersOf(server, endpoint)).toEqual([]);
    const { totalMs, outputMs, ...steps } = ended.coldStart;
    expect(Object.values<number>(steps).reduce((sum, ms) => sum + ms, 0)).toBe(totalMs);
    const at = (phase: string) => ended.timeline.find((each: Body) => each.phase === phase).afterMs;
    expect(totalMs).toBe(at("first take"));
    expect(outputMs).toBe(at("first output") - at("first take"));
    expect(phasesOf(ended).slice(-2)).toEqual(["asked to stop", "ended"]);
    expect(ended).toMatchObject({ desiredStatus: "EXITED", exit: { code: 0 } });
    expect(await workerOf(server, workerId)).toEqual(ended);
  });

  it("while it starts it is initializing, and a job that waits for it says so", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server, { workersMin: 0 });
    const job = await submit(server, endpoint);
    await puppet();
    const [worker] = await workersOf(server, endpoint);
    expect(worker).toMatchObject({ state: "initializing", jobs: 0 });
    expect(worker.coldStart.totalMs).toBeUndefined();
    expect((await statusOf(server, endpoint, job)).waitReason).toBe("starting");
  });

  it("an unknown worker is a 404, and so is another user's", async (test) => {
    const endpoint = await makeRunning(test, server);
    expectRefusal(await call(server, "GET", "/v1/workers/unknown0000000"), 404, /unknown0000000/);
    expectRefusal(await call(server, "GET", "/v1/endpoints/unknown0000000/workers"), 404);
    expectRefusal(await call(server, "GET", "/v1/endpoints/unknown0000000/cold-starts"), 404);
    expect(await coldStartsOf(server, endpoint)).toEqual({ starts: 0 });
  });

  it("the percentiles of an endpoint match its workers' own figures", async (test) => {
    const endpoint = await makeRunning(test, server, { workersMin: 3, workersMax: 3 });
    await until(async () => (await coldStartsOf(server, endpoint)).starts === 3); // a worker is idle shortly before
    const totals = (await workersOf(server, endpoint)).map(({ coldStart }) => coldStart.totalMs).sort((a, b) => a - b);
    const cold = await coldStartsOf(server, endpoint);
    expect(cold.totalMs).toEqual({ p50: totals[1], p90: totals[2], p99: totals[2] });
    for (const step of ["startMs", "readyMs"]) {
      const { p50, p90, p99 } = cold[step];
      expect(p50 <= p90 && p90 <= p99).toBe(true);
    }
  });
});

describe.concurrent("workers that end at their start", () => {
  /** An endpoint whose workers run a shell script, with a job that waits for them. */
  async function makeFailing(test: Ending, words: string) {
    const endpoint = await makeRunning(test, server, {}, undefined, { dockerStartCmd: ["sh", "-c", words] });
    return { endpoint, job: await submit(server, endpoint, { echo: 1 }) };
  }
  const firstEnd = (endpoint: string) => inState(server, endpoint, "ended");

  it.for([
    {
      it: "by themselves are reported with the last lines of their log",
      words: "echo 'Traceback (most recent call last):' >&2; echo \"KeyError: 'MODEL'\" >&2; exit 1",
      exit: { code: 1, cause: "start", note: expect.stringMatching(/exit code 1.*KeyError: 'MODEL'/s) },
      detail: /exit code 1.*KeyError: 'MODEL'/s,
    },
    {
      it: "by SIGKILL are reported as short of memory",
      words: "echo loading; kill -9 $$",
      exit: { signal: "SIGKILL", cause: "memory", note: expect.stringMatching(/memory runs out/) },
      detail: /memory runs out.*loading/s,
    },
    {
      it: "with 137 are also reported as short of memory",
      words: "exit 137",
      exit: { code: 137, cause: "memory", note: expect.stringMatching(/memory runs out/) },
      detail: /memory runs out/,
    },
    {
      it: "for lack of a GPU are reported with that cause",
      words: "echo 'RuntimeError: No CUDA GPUs are available' >&2; exit 1",
      exit: { code: 1, cause: "gpu", note: expect.stringMatching(/no GPU.*No CUDA GPUs are available/s) },
      detail: /no GPU.*No CUDA GPUs are available/s,
    },
  ])("$it", async ({ words, exit, detail }, test) => {
    const { endpoint, job } = await makeFailing(test, words);
    expect((await firstEnd(endpoint)).exit).toMatchObject(exit);
    const waiting = await until(async () => {
      const body = await statusOf(server, endpoint, job);
      return /start_failed|crash_looping/.test(body.waitReason) && body;
    });
    expect(waiting.waitDetail).toMatch(detail);
  });

  it("and whose program is missing are reported with its name", async (test) => {
    const endpoint = await makeRunning(test, server, {}, undefined, { dockerStartCmd: ["no-such-program"] });
    await submit(server, endpoint);
    expect((await firstEnd(endpoint)).exit.note).toMatch(/'no-such-program'.*ENOENT/);
  });

  it("are retried after growing pauses, count as a crash loop, and recover after a save that fixes them", async (test) => {
    const { endpoint, job } = await makeFailing(
      test,
      '[ -n "$MENDED" ] && exec node $RUNNER handler.mjs; echo broken; exit 3',
    );
    const runner = new URL("../../../packages/worker/dist/run-handler.js", import.meta.url).pathname;
    const waiting = await until(async () => {
      const body = await statusOf(server, endpoint, job);
      return body.waitReason === "crash_looping" && body;
    });
    expect(waiting.waitDetail).toMatch(/exit code 3: broken/);
    await until(async () => (await healthOf(server, endpoint)).workers.unhealthy === 1); // between two attempts
    await until(async () => (await allWorkersOf(server, endpoint)).length >= 4);
    const made = (await allWorkersOf(server, endpoint)).reverse();
    const at = (worker: Body, phase: string) =>
      Date.parse(worker.timeline.find((each: Body) => each.phase === phase).at);
    for (const [n, pauseMs] of [1_000, 2_000, 4_000].entries()) {
      expect(at(made[n + 1], "asked for") - at(made[n], "ended")).toBeGreaterThanOrEqual(pauseMs - 1);
    }
    await save(server, endpoint, { env: { MENDED: "1", RUNNER: runner } });
    expect(await reach(server, endpoint, job, "COMPLETED")).toMatchObject({ output: 1, retries: 0 });
    expect((await healthOf(server, endpoint)).workers.unhealthy).toBe(0);
  });

  it("no longer count once a worker comes up", async (test) => {
    const folder = makeFolder(test);
    const count = join(folder, "count");
    const runner = new URL("../../../packages/worker/dist/run-handler.js", import.meta.url).pathname;
    const words = `echo x >> ${count}; [ $(wc -l < ${count}) -ge 3 ] && exec node ${runner} handler.mjs; exit 1`;
    const { endpoint, job } = await makeFailing(test, words);
    expect(await reach(server, endpoint, job, "COMPLETED")).toMatchObject({ output: 1, retries: 0 });
    expect(journal(count)).toHaveLength(3);
    expect((await healthOf(server, endpoint)).workers).toMatchObject({ unhealthy: 0, ready: 1 });
  });
});
