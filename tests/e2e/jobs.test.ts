import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeQueue, makeRunning } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { type Body, expectRefusal, healthOf, reach, statusOf, submit, unknownJob } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const post = (path: string, body?: unknown, headers?: Record<string, string>) =>
  call(server, "POST", `/v2/${path}`, body, headers);
const get = (path: string) => call(server, "GET", `/v2/${path}`);

/** Runs a job on a handler to its end: FAILED if its input says so. */
async function finished(endpoint: string, input: unknown): Promise<string> {
  const reply = await post(`${endpoint}/runsync`, { input });
  expect(["COMPLETED", "FAILED"]).toContain(reply.body.status);
  return reply.body.id;
}

describe.concurrent("/cancel", () => {
  it("takes a waiting job out of the queue, and succeeds again when repeated", async (test) => {
    const endpoint = await makeQueue(test, server);
    const job = await submit(server, endpoint);
    for (let times = 0; times < 2; times++) {
      const reply = await post(`${endpoint}/cancel/${job}`);
      expect([reply.status, reply.body]).toEqual([200, { id: job, status: "CANCELLED" }]);
    }
    expect(await statusOf(server, endpoint, job)).toMatchObject({ status: "CANCELLED", executionTime: 0 });
    expect((await healthOf(server, endpoint)).jobs.inQueue).toBe(0);
  });

  it("stops a running job on its worker", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint);
    await worker.take();
    const stops = worker.stops();
    expect((await post(`${endpoint}/cancel/${job}`)).body).toEqual({ id: job, status: "CANCELLED" });
    expect((await stops).body).toEqual({ jobsToStop: [job] });
    expect((await worker.done(job, { output: "too late" })).status).toBe(200);
    const body = await statusOf(server, endpoint, job);
    expect(body.status).toBe("CANCELLED");
    expect(body).not.toHaveProperty("output");
  });

  it("refuses a job that is over, naming its state", async (test) => {
    const endpoint = await makeRunning(test, server);
    const completed = await finished(endpoint, {});
    expectRefusal(await post(`${endpoint}/cancel/${completed}`), 400, /COMPLETED/);
    const failed = await finished(endpoint, { fail: "x" });
    expectRefusal(await post(`${endpoint}/cancel/${failed}`), 400, /FAILED/);
    expectRefusal(await post(`${endpoint}/cancel/${unknownJob}`), 404);
  });

  it("accepts an empty POST with a JSON content type, and ignores a body", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const body of ["", "{not json", "[]"]) {
      const job = await submit(server, endpoint);
      const reply = await post(`${endpoint}/cancel/${job}`, body, { "content-type": "application/json" });
      expect([reply.status, reply.body]).toEqual([200, { id: job, status: "CANCELLED" }]);
    }
  });
});

describe.concurrent("/retry", () => {
  it("runs a failed job again under its id, with its input, and without its earlier output", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint, { seed: 1 });
    const other = await submit(server, endpoint, { seed: 2 });
    await worker.take();
    await worker.done(job, { error: "first time", output: "partial" });
    expect(await statusOf(server, endpoint, job)).toMatchObject({ status: "FAILED", output: "partial" });
    const reply = await post(`${endpoint}/retry/${job}`);
    expect([reply.status, reply.body]).toEqual([200, { id: job, status: "IN_QUEUE" }]);
    const waiting = await statusOf(server, endpoint, job);
    expect(waiting).toMatchObject({ status: "IN_QUEUE", executionTime: 0, retries: 0 });
    expect(waiting).not.toHaveProperty("output");
    expect(waiting).not.toHaveProperty("error");
    expect((await worker.take()).body.id).toBe(other); // the retried job went to the back
    await worker.done(other, {});
    expect((await worker.take()).body).toEqual({ id: job, input: { seed: 1 } });
    await worker.done(job, { output: "second time" });
    const body = await statusOf(server, endpoint, job);
    expect(body).toMatchObject({ status: "COMPLETED", output: "second time" });
    expect((await healthOf(server, endpoint)).jobs.retried).toBe(0);
  });

  it("is refused in every other state, naming it", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint);
    expectRefusal(await post(`${endpoint}/retry/${job}`), 400, /IN_QUEUE/);
    await worker.take();
    expectRefusal(await post(`${endpoint}/retry/${job}`), 400, /IN_PROGRESS/);
    await worker.done(job, { output: 1 });
    expectRefusal(await post(`${endpoint}/retry/${job}`), 400, /COMPLETED/);
    expect(await statusOf(server, endpoint, job)).toMatchObject({ status: "COMPLETED", output: 1 });
    const cancelled = await submit(server, endpoint);
    await post(`${endpoint}/cancel/${cancelled}`);
    expectRefusal(await post(`${endpoint}/retry/${cancelled}`), 400, /CANCELLED/);
    expectRefusal(await post(`${endpoint}/retry/${unknownJob}`), 404);
  });

  it("runs a timed-out job again", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint, {}, { policy: { executionTimeout: 5_000 } });
    await worker.take();
    const late = await reach(server, endpoint, job, "TIMED_OUT", 15_000);
    expect(late.error).toMatch(/\S/);
    expect(late.executionTime).toBeGreaterThanOrEqual(5_000);
    await worker.done(job, {});
    expectRefusal(await post(`${endpoint}/cancel/${job}`), 400, /TIMED_OUT/);
    expect((await post(`${endpoint}/retry/${job}`)).body).toEqual({ id: job, status: "IN_QUEUE" });
    expect((await worker.take()).body.id).toBe(job);
    await worker.done(job, { output: "in time" });
    expect(await statusOf(server, endpoint, job)).toMatchObject({ status: "COMPLETED", output: "in time" });
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ failed: 1, completed: 1 });
  });
});

describe.concurrent("/purge-queue", () => {
  it("cancels waiting jobs, leaves running jobs, and answers held requests", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const running = await submit(server, endpoint);
    await worker.take();
    const waiting = await submit(server, endpoint);
    const held = post(`${endpoint}/runsync`, { input: {} });
    await until(async () => (await healthOf(server, endpoint)).jobs.inQueue === 2);
    const reply = await post(`${endpoint}/purge-queue`);
    expect([reply.status, reply.body]).toEqual([200, { removed: 2, status: "completed" }]);
    expect((await held).status).toBe(200);
    expect((await held).body).toMatchObject({ status: "CANCELLED", error: expect.stringMatching(/purge/i) });
    const purged = await statusOf(server, endpoint, waiting);
    expect(purged).toMatchObject({ status: "CANCELLED", error: expect.stringMatching(/purge/i) });
    await worker.done(running, { output: 1 });
    expect(await statusOf(server, endpoint, running)).toMatchObject({ status: "COMPLETED", output: 1 });
    expect((await post(`${endpoint}/purge-queue`)).body).toEqual({ removed: 0, status: "completed" });
  });
});

describe.concurrent("/health", () => {
  it("always has every count", async (test) => {
    const endpoint = await makeQueue(test, server);
    expect(await healthOf(server, endpoint)).toEqual({
      jobs: { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 },
      workers: { idle: 0, running: 0, initializing: 0, ready: 0, throttled: 0, unhealthy: 0, paused: 0 },
    });
  });

  it("follows jobs and workers", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    await until(async () => (await healthOf(server, endpoint)).workers.initializing === 1);
    const jobs = [await submit(server, endpoint), await submit(server, endpoint)];
    await worker.take();
    const busy = await healthOf(server, endpoint);
    expect(busy.jobs).toMatchObject({ inProgress: 1, inQueue: 1, completed: 0 });
    expect(busy.workers).toMatchObject({ running: 1, idle: 0, ready: 1, initializing: 0 });
    await worker.done(jobs[0] as string, {});
    expect((await healthOf(server, endpoint)).workers).toMatchObject({ running: 0, idle: 1, ready: 1 });
    await worker.take();
    await worker.done(jobs[1] as string, { error: "x" });
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({
      completed: 1,
      failed: 1,
      inProgress: 0,
      inQueue: 0,
    });
  });
});

describe.concurrent("/requests", () => {
  it("lists the newest first, page by page", async (test) => {
    const endpoint = await makeQueue(test, server);
    const jobs: string[] = [];
    for (let n = 0; n < 5; n++) jobs.unshift(await submit(server, endpoint));
    const whole = await get(`${endpoint}/requests`);
    expect(whole.status).toBe(200);
    expect(whole.body.requests.map((one: Body) => one.id)).toEqual(jobs);
    expect(whole.body.requests[0]).toMatchObject({ status: "IN_QUEUE", executionTime: 0, workerId: "", retries: 0 });
    const seen: string[] = [];
    let cursor = "";
    for (let pages = 0; pages < 3; pages++) {
      const page = await get(`${endpoint}/requests?limit=2${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      expect(page.body.requests.length).toBeLessThanOrEqual(2);
      seen.push(...page.body.requests.map((one: Body) => one.id));
      cursor = page.body.nextCursor ?? "";
      if (cursor === "") break;
      if (pages === 0) await submit(server, endpoint); // a new job does not shift the pages that follow
    }
    expect(seen).toEqual(jobs);
    expect(cursor).toBe("");
  });

  it("filters by status, and holds its parameters to their bounds", async (test) => {
    const endpoint = await makeQueue(test, server);
    const [waiting, cancelled] = [await submit(server, endpoint), await submit(server, endpoint)];
    await post(`${endpoint}/cancel/${cancelled}`);
    const ids = async (status: string) =>
      (await get(`${endpoint}/requests?status=${status}`)).body.requests.map((one: Body) => one.id);
    expect(await ids("IN_QUEUE")).toEqual([waiting]);
    expect(await ids("CANCELLED")).toEqual([cancelled]);
    expect(await ids("COMPLETED")).toEqual([]);
    for (const query of ["limit=0", "limit=101", "limit=abc", "status=NOPE", "cursor=%21%21"]) {
      expectRefusal(await get(`${endpoint}/requests?${query}`), 400, new RegExp(query.split("=")[0] as string));
    }
    expect((await get(`${endpoint}/requests?limit=100`)).body).not.toHaveProperty("nextCursor");
  });
});

it("runs the jobs of an endpoint in the order they came", async (test) => {
  const { id: endpoint, puppet } = await makePuppets(test, server);
  const jobs: string[] = [];
  for (let n = 0; n < 20; n++)
    jobs.push(await submit(server, endpoint, { n }, { policy: { lowPriority: n % 2 === 0 } }));
  const worker = await puppet();
  const taken: string[] = [];
  for (let n = 0; n < 20; n++) {
    const { body } = await worker.take();
    taken.push(body.id);
    await worker.done(body.id, {});
  }
  expect(taken).toEqual(jobs);
});
