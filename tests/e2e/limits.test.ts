import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeQueue } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { healthOf, submit } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_REQUESTS_PER_WORKER: "7" });
});
afterAll(() => server?.end());

const purge = (endpoint: string, to: TestServer = server) => call(to, "POST", `/v2/${endpoint}/purge-queue`);
const requests = (endpoint: string, query = "") => call(server, "GET", `/v2/${endpoint}/requests${query}`);

describe.concurrent("a rate limit", () => {
  it("refuses the third purge within ten seconds, and says when to try again", { timeout: 30_000 }, async (test) => {
    const endpoint = await makeQueue(test, server);
    const begun = Date.now();
    for (const reply of [await purge(endpoint), await purge(endpoint)]) expect(reply.status).toBe(200);
    const job = await submit(server, endpoint);
    const refused = await purge(endpoint);
    expect(refused.status).toBe(429);
    expect(refused.body).toEqual({
      error: expect.stringMatching(/\w+ \w+/),
      code: "RATE_LIMITED",
      requestId: refused.headers.get("x-request-id"),
    });
    const retryAfter = Number(refused.headers.get("retry-after"));
    expect(Number.isInteger(retryAfter)).toBe(true);
    expect(retryAfter).toBeGreaterThanOrEqual(1);
    expect(retryAfter).toBeLessThanOrEqual(10);
    expect([...refused.headers.keys()].filter((name) => name.startsWith("ratelimit"))).not.toEqual([]);
    expect((await healthOf(server, endpoint)).jobs.inQueue).toBe(1);
    const again = await until(async () => {
      const reply = await purge(endpoint);
      return reply.status === 200 && reply;
    }, 15_000);
    expect(Date.now() - begun).toBeGreaterThan(9_000);
    expect(again.body).toEqual({ removed: 1, status: "completed" });
    expect((await call(server, "GET", `/v2/${endpoint}/status/${job}`)).body.status).toBe("CANCELLED");
  });

  it("belongs to one endpoint and one operation", async (test) => {
    const [one, two] = [await makeQueue(test, server), await makeQueue(test, server)];
    for (let n = 0; n < 2; n++) await purge(one);
    expect((await purge(one)).status).toBe(429);
    expect((await purge(two)).status).toBe(200);
    expect((await requests(one)).status).toBe(200);
  });

  it("is checked after the key and the endpoint, and before the request itself", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (let n = 0; n < 10; n++) expect((await requests(endpoint)).status).toBe(200);
    expect((await requests(endpoint, "?limit=0")).status).toBe(429);
    const authorization = "Bearer wrong";
    const wrong = await call(server, "GET", `/v2/${endpoint}/requests`, undefined, { authorization });
    expect(wrong.status).toBe(401);
    expect((await requests("unknown0000000")).status).toBe(404);
  });

  it("is not used up by requests with a wrong key", async (test) => {
    const endpoint = await makeQueue(test, server);
    const authorization = "Bearer wrong";
    for (let n = 0; n < 5; n++) {
      await call(server, "POST", `/v2/${endpoint}/purge-queue`, undefined, { authorization });
    }
    expect((await purge(endpoint)).status).toBe(200);
  });

  it("applies to cancelling too: a hundred in ten seconds", async (test) => {
    const endpoint = await makeQueue(test, server);
    const cancel = () => call(server, "POST", `/v2/${endpoint}/cancel/01890a5d-ac96-774b-bcce-b302099a8057-u1`);
    const statuses: number[] = [];
    // ten at a time: one after the other, a slow machine needs more than ten seconds
    for (let n = 0; n < 10; n++)
      statuses.push(...(await Promise.all(Array.from({ length: 10 }, cancel))).map(({ status }) => status));
    statuses.push((await cancel()).status);
    expect(statuses.filter((status) => status === 404)).toHaveLength(100);
    expect(statuses.at(-1)).toBe(429);
  });

  it("counts calls in flight: the 401st /runsync at a time is refused", async (test) => {
    const endpoint = await makeQueue(test, server);
    const asked = Array.from({ length: 405 }, () =>
      call(server, "POST", `/v2/${endpoint}/runsync?wait=10000`, { input: {} }),
    );
    const early = await Promise.any(asked);
    expect(early.status).toBe(429);
    await until(async () => (await healthOf(server, endpoint)).jobs.inQueue === 400);
    expect((await purge(endpoint)).body.removed).toBe(400);
    const statuses = (await Promise.all(asked)).map((reply) => reply.status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(400);
    expect(statuses.filter((status) => status === 429)).toHaveLength(5);
  });

  it("grows with the workers that hold a job", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    await submit(server, endpoint);
    await worker.take();
    await until(async () => (await healthOf(server, endpoint)).workers.running === 1);
    const statuses: number[] = [];
    for (let n = 0; n < 8; n++) statuses.push((await purge(endpoint)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 200, 429]); // one worker x 7, against 2
  });

  it("does not apply to workers' calls", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint);
    await worker.take();
    const answers = await Promise.all(Array.from({ length: 300 }, () => worker.ping([job])));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
  });
});

it("rate limits can be turned off", async (test) => {
  const free = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  test.onTestFinished(() => free.end());
  const endpoint = await makeQueue(test, free);
  for (let n = 0; n < 5; n++) expect((await purge(endpoint, free)).status).toBe(200);
});
