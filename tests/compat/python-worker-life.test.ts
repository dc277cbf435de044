import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { within } from "../e2e/within.js";
import { call, startServer, type TestServer, until } from "../harness.js";
import * as stock from "./stock.js";

let server: TestServer;

beforeAll(async () => {
  server = await startServer();
});

afterAll(async () => {
  await server?.end();
  stock.removeFolders();
});

const deploy = (name: string, settings = {}, env = {}) => stock.deploy(server, name, settings, env);
const submit = (to: stock.Deployment, input: Record<string, unknown>, more = {}) =>
  stock.submit(server, to.id, input, more);
const settled = (of: stock.Deployment, job: string, withinMs?: number) => stock.settled(server, of.id, job, withinMs);
const reached = (of: stock.Deployment, job: string, state: string) => stock.reached(server, of.id, job, state);
const ran = (on: stock.Deployment, input: Record<string, unknown>) => stock.ran(server, on.id, input);
const healthOf = async (of: stock.Deployment) => (await call(server, "GET", `/v2/${of.id}/health`)).body;

describe.concurrent("a stock worker that asks to be replaced", () => {
  it("by a key in its output is replaced by another worker for the next job", async () => {
    const own = await deploy("plain");
    const first = await ran(own, { do: "refresh" });
    expect(first).toMatchObject({ status: "COMPLETED", output: { kept: 1 } });
    const second = await ran(own, { do: "value", value: 2 });
    expect(second).toMatchObject({ status: "COMPLETED", output: 2, retries: 0 });
    expect(second.workerId).not.toBe(first.workerId);
    expect((await ran(own, { do: "value", value: 3 })).workerId).toBe(second.workerId);
  });

  it("by its start option is replaced after every job", async () => {
    const own = await deploy("refreshing");
    const jobs = [await submit(own, {}), await submit(own, {}), await submit(own, {})];
    const ends = await Promise.all(jobs.map((job) => settled(own, job)));
    expect(ends.map(({ status, retries }) => [status, retries])).toEqual(Array(3).fill(["COMPLETED", 0]));
    expect(new Set(ends.map(({ workerId }) => workerId)).size).toBe(3);
    expect(new Set(ends.map(({ output }) => output.leader)).size).toBe(3);
  });
});

describe.concurrent("a stock worker that takes several jobs at a time", () => {
  it("has them all at once", async () => {
    const own = await deploy("crowd");
    const jobs = await Promise.all([1, 2, 3].map(() => submit(own, { ticks: 200, enough: 3 })));
    const ends = await Promise.all(jobs.map((job) => settled(own, job)));
    expect(ends.map(({ status, output }) => [status, output])).toEqual(Array(3).fill(["COMPLETED", { most: 3 }]));
    expect(new Set(ends.map(({ workerId }) => workerId)).size).toBe(1);
  });

  it("stops only the cancelled job, over several heartbeats", async () => {
    const own = await deploy("crowd");
    const jobs = await Promise.all([1, 2, 3].map(() => submit(own, { ticks: 140 })));
    await until(() => own.notes().length === 3, 45_000);
    const stopped = jobs[1] as string;
    expect((await call(server, "POST", `/v2/${own.id}/cancel/${stopped}`)).body.status).toBe("CANCELLED");
    await until(() => own.notes().includes(`CancelledError ${stopped}`), 5_000);
    const ends = await Promise.all(jobs.map((job) => settled(own, job)));
    expect(ends.map(({ status }) => status)).toEqual(["COMPLETED", "CANCELLED", "COMPLETED"]);
    expect(ends[0]).toMatchObject({ retries: 0 });
    expect(ends[2]).toMatchObject({ retries: 0, workerId: ends[0].workerId });
    expect(own.notes().length).toBe(4);
  });
});

describe.concurrent("a job that is stopped", () => {
  it("by cancel ends inside an async handler, whose worker goes on", async () => {
    const own = await deploy("awaiting");
    const job = await submit(own, { seconds: 60 });
    const { workerId } = await reached(own, job, "IN_PROGRESS");
    await until(() => own.notes().includes(`start ${job}`));
    const cancelled = await call(server, "POST", `/v2/${own.id}/cancel/${job}`);
    expect(cancelled).toMatchObject({ status: 200, body: { id: job, status: "CANCELLED" } });
    await until(() => own.notes().includes(`CancelledError ${job}`), 5_000);
    expect(await ran(own, { seconds: 0 })).toMatchObject({ status: "COMPLETED", output: { slept: 0 }, workerId });
    expect(await stock.statusOf(server, own.id, job)).toMatchObject({ status: "CANCELLED" });
  });

  it("by its executionTimeout is TIMED_OUT, and ends inside an async handler", async (test) => {
    const own = await deploy("awaiting");
    const job = await submit(own, { seconds: 60 }, { policy: { executionTimeout: 5_000 } });
    await reached(own, job, "IN_PROGRESS");
    const end = await within(test, server, 7_000, () => settled(own, job));
    expect(end).toMatchObject({ status: "TIMED_OUT", error: expect.stringMatching(/\S/) });
    expect(end.executionTime).toBeGreaterThanOrEqual(5_000);
    await until(() => own.notes().includes(`CancelledError ${job}`), 5_000);
    expect(await ran(own, { seconds: 0 })).toMatchObject({ status: "COMPLETED", workerId: end.workerId });
  });

  it("by cancel inside a blocking plain handler costs its worker, but not the next job", {
    timeout: 120_000,
  }, async () => {
    const own = await deploy("plain");
    const { leader } = (await ran(own, { do: "pids" })).output;
    const job = await submit(own, { do: "block" });
    const { workerId } = await reached(own, job, "IN_PROGRESS");
    const next = await submit(own, { do: "value", value: "next" });
    await call(server, "POST", `/v2/${own.id}/cancel/${job}`);
    const end = await settled(own, next, 60_000);
    expect(end).toMatchObject({ status: "COMPLETED", output: "next", retries: 0 });
    expect(end.workerId).not.toBe(workerId);
    await until(() => !stock.runs(leader), 45_000);
    expect(await stock.statusOf(server, own.id, job)).toMatchObject({ status: "CANCELLED" });
  });
});

describe.concurrent("a stock worker that dies", () => {
  it("gives its job back within seconds, though its heartbeat's process lives on", async () => {
    const own = await deploy("plain");
    const job = await submit(own, { do: "first_blocks" });
    const line = await until(() => own.notes()[0], 45_000);
    const [leader, child] = line.split(" ").map(Number) as [number, number];
    const before = await reached(own, job, "IN_PROGRESS");
    process.kill(leader, "SIGKILL");
    await until(async () => (await stock.statusOf(server, own.id, job)).retries === 1, 5_000);
    await until(() => !stock.runs(child), 5_000);
    const end = await settled(own, job);
    expect(end).toMatchObject({ status: "COMPLETED", output: "the second time", retries: 1 });
    expect(end.workerId).not.toBe(before.workerId);
    expect((await healthOf(own)).jobs).toMatchObject({ completed: 1, failed: 0, retried: 1 });
  });

  it("three times because of one job fails that job with a reason, and the others continue", async () => {
    const own = await deploy("plain");
    const deadly = await submit(own, { do: "die" });
    const harmless = await submit(own, { do: "value", value: "alive" });
    const end = await settled(own, deadly, 60_000);
    expect(end.status).toBe("FAILED");
    expect(end.error).toMatch(/\b(3|three|third)\b/i);
    expect(await settled(own, harmless)).toMatchObject({ status: "COMPLETED", output: "alive", retries: 0 });
    expect(own.notes()).toEqual(["die", "die", "die"]);
  });

  it("at its import keeps the job waiting, and the job's status says why", { timeout: 90_000 }, async () => {
    const own = await deploy("broken");
    const job = await submit(own, {});
    const told = await until(async () => {
      const status = await stock.statusOf(server, own.id, job);
      return ["start_failed", "crash_looping"].includes(status.waitReason) && status;
    });
    expect(told).toMatchObject({ status: "IN_QUEUE", workerId: "", retries: 0 });
    expect(told.waitDetail).toContain("the weights are not where they should be");
    const looping = await until(async () => {
      const status = await stock.statusOf(server, own.id, job);
      return status.waitReason === "crash_looping" && status;
    }, 60_000);
    expect(looping.waitDetail).toContain("the weights are not where they should be");
  });

  it("because of its own fitness check leaves that check's reason", async () => {
    const own = await deploy("unfit");
    const job = await submit(own, {});
    const told = await until(async () => {
      const status = await stock.statusOf(server, own.id, job);
      return ["start_failed", "crash_looping"].includes(status.waitReason) && status;
    }, 30_000);
    expect(told.waitDetail).toContain("no disk is mounted");
  });
});

describe.concurrent("a stock worker that is not needed", () => {
  it("ends within seconds when workersMax becomes 0, and its heartbeat with it", async () => {
    const own = await deploy("plain", { idleTimeout: 120 });
    const { leader, child } = (await ran(own, { do: "pids" })).output;
    expect([stock.runs(leader), stock.runs(child)]).toEqual([true, true]);
    const changed = await call(server, "PATCH", `/v1/endpoints/${own.id}`, { workersMin: 0, workersMax: 0 });
    expect(changed.status).toBe(200);
    await until(() => !stock.runs(leader) && !stock.runs(child), 8_000);
    const workers = { idle: 0, ready: 0, running: 0, unhealthy: 0 };
    expect(
      await until(async () => (await healthOf(own)).workers.idle === 0 && (await healthOf(own)).workers),
    ).toMatchObject(workers);
  });

  it("ends by itself after its idleTimeout", async () => {
    const own = await deploy("plain", { idleTimeout: 2 });
    const { leader } = (await ran(own, { do: "pids" })).output;
    await until(() => !stock.runs(leader), 12_000);
    expect((await healthOf(own)).jobs).toMatchObject({ completed: 1, failed: 0, retried: 0 });
  });
});
