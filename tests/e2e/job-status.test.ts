import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeQueue, makeRunning } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { expectRefusal, healthOf, reachTime, statusOf, submit, unknownJob } from "./wire.js";

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
