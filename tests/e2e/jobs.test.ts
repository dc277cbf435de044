import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeQueue, makeRunning } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { type Body, expectRefusal, healthOf, reach, reachTime, statusOf, submit, unknownJob } from "./wire.js";

const uuid7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
const waitReasons = [
  ...["no_worker", "starting", "workers_busy", "no_capacity", "location", "workers_max_reached"],
  ...["workers_max_zero", "low_priority", "start_failed", "crash_looping"],
];

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

describe.concurrent("/runsync", () => {
  it("answers with the output, the times and an id of its own kind", async (test) => {
    const endpoint = await makeRunning(test, server);
    const reply = await post(`${endpoint}/runsync`, { input: { echo: [1, "two"] } });
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ status: "COMPLETED", output: [1, "two"] });
    expect(reply.body.id).toMatch(new RegExp(`^sync-${uuid7}-u1$`));
    expect(Number.isInteger(reply.body.delayTime) && Number.isInteger(reply.body.executionTime)).toBe(true);
    const { body } = await get(`${endpoint}/status/${reply.body.id}`);
    expect(body).toMatchObject({ status: "COMPLETED", output: [1, "two"] });
  });

  it("answers 200 for a job that failed, with its error", async (test) => {
    const endpoint = await makeRunning(test, server);
    const reply = await post(`${endpoint}/runsync`, { input: { fail: "no such model" } });
    expect(reply.status).toBe(200);
    expect(reply.body.status).toBe("FAILED");
    expect(reply.body.error).toContain("no such model");
    expect(reply.body).not.toHaveProperty("output");
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ failed: 1, retried: 0 });
  });

  it("holds `wait` to its bounds", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const wait of ["999", "300001", "0", "-1", "abc", "1500.5"]) {
      expectRefusal(await post(`${endpoint}/runsync?wait=${wait}`, { input: {} }), 400, /wait/);
    }
    expect((await healthOf(server, endpoint)).jobs.inQueue).toBe(0);
  });

  it("answers with the present status when `wait` passes, and the job goes on", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const begun = Date.now();
    const reply = await post(`${endpoint}/runsync?wait=1000`, { input: {} });
    expect(Date.now() - begun).toBeGreaterThanOrEqual(990);
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ status: "IN_QUEUE", executionTime: 0 });
    const worker = await puppet();
    expect((await worker.take()).body.id).toBe(reply.body.id);
    await worker.done(reply.body.id, { output: "late" });
    expect(await statusOf(server, endpoint, reply.body.id)).toMatchObject({ status: "COMPLETED", output: "late" });
  });

  it("does not stop the job of a client that hangs up", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const hangUp = new AbortController();
    const asked = fetch(`${server.url}/v2/${endpoint}/runsync`, {
      method: "POST",
      headers: { authorization: server.key },
      body: '{"input":{"name":"kept"}}',
      signal: hangUp.signal,
    }).catch((error) => error.name);
    const worker = await puppet();
    const { body } = await worker.take();
    expect(body.input).toEqual({ name: "kept" });
    hangUp.abort();
    expect(await asked).toBe("AbortError");
    await worker.done(body.id, { output: 1 });
    expect(await statusOf(server, endpoint, body.id)).toMatchObject({ status: "COMPLETED", output: 1 });
  });
});

describe.concurrent("/status", () => {
  it("shows a waiting job's times, retries and why it waits", async (test) => {
    const endpoint = await makeQueue(test, server);
    const job = await submit(server, endpoint);
    await submit(server, endpoint);
    const { status, body } = await get(`${endpoint}/status/${job}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: job, status: "IN_QUEUE", executionTime: 0, workerId: "", retries: 0 });
    expect(waitReasons).toContain(body.waitReason);
    expect(body.waitReason).toBe("workers_max_zero");
    expect(body.waitDetail).toMatch(/\w+ \w+/);
    expect(body).not.toHaveProperty("output");
    expect(body).not.toHaveProperty("error");
    const later = await until(async () => {
      const next = await statusOf(server, endpoint, job);
      return next.delayTime > body.delayTime && next;
    });
    expect(Number.isInteger(later.delayTime)).toBe(true);
  });

  it("shows a running job's worker and times so far", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint);
    await worker.take();
    const first = await statusOf(server, endpoint, job);
    expect(first).toMatchObject({ status: "IN_PROGRESS", workerId: worker.id });
    expect(first).not.toHaveProperty("waitReason");
    const later = await until(async () => {
      const next = await statusOf(server, endpoint, job);
      return next.executionTime > first.executionTime && next;
    });
    expect(later.delayTime).toBe(first.delayTime);
  });

  it("is 404 for an unknown job, and for another endpoint's job", async (test) => {
    const [endpoint, other] = [await makeQueue(test, server), await makeQueue(test, server)];
    const job = await submit(server, endpoint);
    for (const id of [unknownJob, "nonsense", "%00", "..%2f..", `${job}x`]) {
      expectRefusal(await get(`${endpoint}/status/${id}`), 404);
    }
    expectRefusal(await get(`${other}/status/${job}`), 404);
  });

  it("sets the ttl, within its bounds, counted from the submission", async (test) => {
    const endpoint = await makeQueue(test, server);
    const short = await submit(server, endpoint, {}, { policy: { ttl: 10_000 } });
    const long = await submit(server, endpoint);
    const submitted = Date.now();
    for (const ttl of ["9999", "604800001", "abc", "10000.5"]) {
      expectRefusal(await get(`${endpoint}/status/${long}?ttl=${ttl}`), 400, /ttl/);
    }
    expect((await get(`${endpoint}/status/${short}?ttl=10000`)).status).toBe(200);
    const gone = await until(async () => {
      const reply = await get(`${endpoint}/status/${short}`);
      return reply.status !== 200 && reply;
    }, 15_000);
    expectRefusal(gone, 404);
    expect(Date.now() - submitted).toBeGreaterThan(9_000);
    await reachTime(submitted + 10_100);
    expect((await get(`${endpoint}/status/${long}`)).status).toBe(200);
    expectRefusal(await get(`${endpoint}/status/${long}?ttl=10000`), 404); // its new ttl has already passed
    expectRefusal(await get(`${endpoint}/status/${long}`), 404);
    await until(async () => (await healthOf(server, endpoint)).jobs.inQueue === 0);
  });

  it("answers POST like GET, and so do status-sync and stream", async (test) => {
    const endpoint = await makeRunning(test, server);
    const job = await finished(endpoint, { echo: 1 });
    for (const path of ["status", "status-sync"]) {
      const byPost = await post(`${endpoint}/${path}/${job}`, "", { "content-type": "application/json" });
      expect(byPost.status).toBe(200);
      expect(byPost.body).toEqual((await get(`${endpoint}/${path}/${job}`)).body);
    }
    const stream = await post(`${endpoint}/stream/${job}`);
    expect([stream.status, stream.body]).toEqual([200, []]);
    expect((await get(`${endpoint}/stream/${job}`)).body).toEqual([]);
  });
});

describe.concurrent("/status-sync", () => {
  it("is held until the job is final", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint);
    await worker.take();
    let answered = false;
    const held = get(`${endpoint}/status-sync/${job}`).finally(() => {
      answered = true;
    });
    await statusOf(server, endpoint, job);
    expect(answered).toBe(false);
    await worker.done(job, { output: "done" });
    const reply = await held;
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ id: job, status: "COMPLETED", output: "done" });
  });

  it("clamps `wait` to the bounds of /runsync", async (test) => {
    const endpoint = await makeQueue(test, server);
    const job = await submit(server, endpoint);
    const begun = Date.now();
    const reply = await get(`${endpoint}/status-sync/${job}?wait=1`);
    expect(reply.status).toBe(200);
    expect(reply.body.status).toBe("IN_QUEUE");
    expect(Date.now() - begun).toBeGreaterThanOrEqual(990);
    const held = get(`${endpoint}/status-sync/${job}?wait=99999999`);
    await post(`${endpoint}/cancel/${job}`);
    expect((await held).body.status).toBe("CANCELLED");
  });
});

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
