import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../../packages/server/src/limits/index.js";
import { call, startServer, type TestServer, until } from "../../harness.js";
import { makeRunning } from "../handlers.js";
import { frozen, letterOf, workersOf } from "../life.js";
import { makeHeld, makePuppets, type Puppet } from "../puppet.js";
import { healthOf, isHeld, reach, reachTime, statusOf, submit } from "../wire.js";
import { within } from "../within.js";

const lostResult = /the worker finished without reporting a result/i;

let server: TestServer;
/** A server that loses silent workers sooner. */
let strict: TestServer;
const silenceMs = 6_000;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  strict = await startServer({}, { workerSilenceMs: silenceMs, takeHoldMs: 2_000 });
});
afterAll(() => Promise.all([server?.end(), strict?.end()]));

describe.concurrent("a lost job", () => {
  it("is a job that a later take does not name: given back to the front, and FAILED the third time", async (test) => {
    const { worker, job, status, endpoint } = await makeHeld(test, server);
    const behind = await submit(server, endpoint);
    for (const retries of [1, 2]) {
      expect((await worker.take()).body.id).toBe(job);
      expect(await status()).toMatchObject({ status: "IN_PROGRESS", retries });
    }
    expect((await worker.take()).body.id).toBe(behind);
    const body = await status();
    expect(body.status).toBe("FAILED");
    expect(body.error).toMatch(lostResult);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ retried: 2, failed: 1 });
    await call(server, "POST", `/v2/${endpoint}/retry/${job}`);
    await worker.done(behind, {});
    expect((await worker.take()).body.id).toBe(job); // a retried job has three starts again
    expect((await worker.take()).body.id).toBe(job);
  });

  it("is not a job that a take with jobs in progress does not name", async (test) => {
    const { worker, job, status, endpoint } = await makeHeld(test, server);
    const next = await submit(server, endpoint);
    expect((await worker.take({ inProgress: true })).body.id).toBe(next);
    expect(await status()).toMatchObject({ status: "IN_PROGRESS", retries: 0 });
    await worker.done(job, { output: 1 });
    expect((await status()).status).toBe("COMPLETED");
  });

  it("is a job that two pings in a row do not name, both five seconds after its take", async (test) => {
    const { worker, job, status, takenAt } = await makeHeld(test, server);
    expect((await worker.ping()).status).toBe(200); // too early to count
    await reachTime(takenAt + 5_300);
    await worker.ping();
    expect(await status()).toMatchObject({ status: "IN_PROGRESS", retries: 0 }); // one ping is never enough
    await worker.ping(["someone-else", job]);
    await worker.ping();
    expect((await status()).status).toBe("IN_PROGRESS"); // they were not in a row
    await worker.ping(["someone-else"]);
    await until(async () => (await status()).status === "IN_QUEUE");
    expect((await status()).retries).toBe(1);
    expect((await worker.take()).body.id).toBe(job);
  });

  it("is a job whose worker is killed: given back at once, and FAILED the third time", async (test) => {
    const { worker, job, status, puppet, endpoint } = await makeHeld(test, server);
    let holder: Puppet = worker;
    for (const retries of [1, 2]) {
      const dying = holder;
      await within(test, server, 5_000, async () => {
        dying.kill();
        await until(async () => (await status()).retries === retries);
      });
      holder = await puppet(retries, 30_000);
      expect((await holder.take()).body.id).toBe(job);
    }
    holder.kill();
    const body = await reach(server, endpoint, job, "FAILED");
    expect(body.error).toMatch(/\S/);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ retried: 2, failed: 1, inQueue: 0 });
  });

  it("is a job whose worker has pinged, and has been silent for 30 seconds", { timeout: 60_000 }, async (test) => {
    expect(limits.workerSilenceMs).toBe(30_000);
    const { worker, job, status, puppet } = await makeHeld(test, strict);
    await worker.ping([job]);
    const silentAt = Date.now();
    const fresh = await within(test, strict, silenceMs + 8_000, () => puppet(1, 45_000));
    expect(Date.now() - silentAt).toBeGreaterThan(silenceMs - 1_000);
    expect(await status()).toMatchObject({ retries: 1 });
    expect((await fresh.take()).body.id).toBe(job);
    await until(() => !worker.alive());
  });
});

describe.concurrent("a worker that FlashBoot has frozen", () => {
  it("is not judged lost by its pings, however long it sleeps", { timeout: 90_000 }, async (test) => {
    const settings = { flashboot: true, idleTimeout: 1, workersMin: 0 };
    const { id: endpoint, puppet } = await makePuppets(test, strict, settings);
    const first = await submit(strict, endpoint);
    const worker = await puppet();
    await worker.take();
    await worker.ping([first]);
    await worker.done(first, { output: 1 });
    await worker.take(); // held until it is frozen
    await frozen(strict, endpoint, worker.pid);
    await reachTime(Date.now() + silenceMs + 2_000);
    expect(letterOf(worker.pid)).toBe("T");
    expect(await workersOf(strict, endpoint)).toMatchObject([{ id: worker.id, state: "paused" }]);
    const next = await submit(strict, endpoint);
    await until(() => letterOf(worker.pid) !== "T");
    expect((await worker.take()).body.id).toBe(next);
    await worker.done(next, { output: 2 });
    expect(await statusOf(strict, endpoint, next)).toMatchObject({ status: "COMPLETED", retries: 0 });
  });
});

describe.concurrent("a job to stop", () => {
  it("is named to its worker, which has five seconds before it is replaced", async (test) => {
    const { worker, job, status, puppet, endpoint } = await makeHeld(test, server, { executionTimeout: 5_000 });
    const stops = await worker.stops();
    expect([stops.status, stops.body]).toEqual([200, { jobsToStop: [job] }]);
    const body = await status();
    expect(body.status).toBe("TIMED_OUT");
    expect(body.error).toMatch(/\S/);
    expect(body.executionTime).toBeGreaterThanOrEqual(5_000);
    const fresh = await puppet(1, 20_000);
    await until(() => !worker.alive());
    const next = await submit(server, endpoint);
    expect((await fresh.take()).body.id).toBe(next);
    expect(await status()).toMatchObject({ status: "TIMED_OUT" });
  });

  it("counts as stopped after its worker's report, and the worker stays", async (test) => {
    const { worker, job, status, endpoint, puppets } = await makeHeld(test, server);
    const cancelledAt = Date.now();
    await call(server, "POST", `/v2/${endpoint}/cancel/${job}`);
    expect((await worker.stops()).body).toEqual({ jobsToStop: [job] });
    expect((await worker.done(job, { error: "stopped" })).status).toBe(200);
    await reachTime(cancelledAt + 7_000);
    expect(puppets()).toHaveLength(1);
    expect(worker.alive()).toBe(true);
    const next = await submit(server, endpoint);
    expect((await worker.take()).body.id).toBe(next);
    expect((await status()).status).toBe("CANCELLED");
  });

  it("counts as stopped after one ping without it", async (test) => {
    const { worker, job, endpoint, puppets } = await makeHeld(test, server);
    const cancelledAt = Date.now();
    await call(server, "POST", `/v2/${endpoint}/cancel/${job}`);
    await worker.ping();
    await reachTime(cancelledAt + 7_000);
    expect(puppets()).toHaveLength(1);
    const next = await submit(server, endpoint);
    expect((await worker.take()).body.id).toBe(next);
  });

  it("is a job whose ttl has passed: it is gone, and its late result is dropped", async (test) => {
    const { worker, job, endpoint } = await makeHeld(test, server, { ttl: 10_000 });
    expect((await worker.stops()).body).toEqual({ jobsToStop: [job] });
    expect((await worker.done(job, { output: 1 })).status).toBe(200);
    expect((await call(server, "GET", `/v2/${endpoint}/status/${job}`)).status).toBe(404);
    const next = await submit(server, endpoint);
    expect((await worker.take()).body.id).toBe(next);
  });
});

describe.concurrent("a worker that must go", () => {
  it("is closed first: it gets no more jobs, its result counts, and then it is stopped", async (test) => {
    const { worker, job, status, endpoint } = await makeHeld(test, server);
    const waiting = await submit(server, endpoint);
    await call(server, "PATCH", `/v1/endpoints/${endpoint}`, { workersMin: 0, workersMax: 0 });
    const poll = worker.take({ inProgress: true });
    expect(await isHeld(server, endpoint, poll)).toBe(true);
    expect(worker.signals()).toEqual([]);
    await worker.done(job, { output: "last" });
    expect(await status()).toMatchObject({ status: "COMPLETED", output: "last" });
    expect((await poll).status).toBe(204);
    await until(() => !worker.alive());
    expect(worker.signals()).toEqual(["SIGTERM"]);
    const body = await statusOf(server, endpoint, waiting);
    expect(body).toMatchObject({ status: "IN_QUEUE", waitReason: "workers_max_zero" });
  });

  it("has its polls answered at once after SIGTERM, and every later one", async (test) => {
    const settings = { workersMin: 1, workersMax: 1, idleTimeout: 1 };
    const { id: endpoint, puppet } = await makePuppets(test, server, settings, { PUPPET_STUBBORN: "1" });
    const worker = await puppet();
    const polls = [worker.take(), worker.stops()];
    expect(await isHeld(server, endpoint, Promise.race(polls))).toBe(true);
    await within(test, server, 10_000, async () => {
      await call(server, "PATCH", `/v1/endpoints/${endpoint}`, { workersMin: 0, workersMax: 0 });
      for (const answer of await Promise.all(polls)) expect([answer.status, answer.text]).toEqual([204, ""]);
      await until(() => worker.signals().length > 0);
      for (const answer of [await worker.take(), await worker.stops()]) expect(answer.status).toBe(204);
    });
    expect(worker.signals()).toEqual(["SIGTERM"]);
    expect(worker.alive()).toBe(true); // it has 30 s
  });

  it("keeps its routes after its endpoint is deleted, until it has ended", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server, {}, { PUPPET_STUBBORN: "1" });
    const worker = await puppet();
    const job = await submit(server, endpoint);
    await worker.take();
    const held = call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} });
    await until(async () => (await healthOf(server, endpoint)).jobs.inQueue === 1);
    expect((await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint}`)).status).toBe(204);
    expect((await worker.done(job, { output: 1 })).status).toBe(200);
    expect((await call(server, "GET", `/v2/${endpoint}/status/${job}`)).status).toBe(404);
    expect((await call(server, "GET", `/v2/${endpoint}/health`)).status).toBe(404);
    const reply = await held;
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ status: "CANCELLED", error: expect.stringMatching(/endpoint deleted/) });
    await until(() => worker.signals().length > 0);
    expect((await worker.done(job, { output: 1 })).status).toBe(200);
    expect((await worker.take()).status).toBe(204);
  });
});

describe.concurrent("a worker that can't start", () => {
  it("is reported with its last log lines", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server, { workersMin: 0 });
    const job = await submit(server, endpoint);
    const worker = await puppet();
    expect((await statusOf(server, endpoint, job)).waitReason).toBe("starting");
    const words = "&status=unhealthy&check=memory&reason=only+1+GB+of+memory+is+free";
    expect((await worker.ping([], words)).status).toBe(200);
    worker.kill();
    const body = await until(async () => {
      const next = await statusOf(server, endpoint, job);
      return ["start_failed", "crash_looping"].includes(next.waitReason) && next;
    });
    expect(body.waitDetail).toContain("only 1 GB of memory is free");
    expect(body).toMatchObject({ status: "IN_QUEUE", retries: 0 });
  });
});

it("our own runner reports its handler's results, errors and progress", async (test) => {
  const endpoint = await makeRunning(test, server);
  const gate = `${server.dataDir}/never`;
  const job = await submit(server, endpoint, { progress: { step: 1 }, gate });
  const body = await until(async () => {
    const next = await statusOf(server, endpoint, job);
    return next.output !== undefined && next;
  });
  expect(body).toMatchObject({ status: "IN_PROGRESS", output: { step: 1 } });
  await call(server, "POST", `/v2/${endpoint}/cancel/${job}`);
  const sync = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: { echo: "next" } });
  expect(sync.body).toMatchObject({ status: "COMPLETED", output: "next" });
  expect(sync.body.workerId).toBe(body.workerId); // the handler ended by job.signal, so the worker was kept
});
