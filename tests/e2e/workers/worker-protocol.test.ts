import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../../packages/server/src/limits/index.js";
import { call, startServer, type TestServer, until } from "../../harness.js";
import { makeHeld, makePuppets } from "../puppet.js";
import { healthOf, isHeld, statusOf, submit } from "../wire.js";
import { within } from "../within.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", SECRET_OF_THE_HOST: "not for workers" });
});
afterAll(() => server?.end());

describe.concurrent("a worker is given", () => {
  it("its URLs, its secret and its facts, and none of the server's own variables", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server, {}, { GREETING: "hello world" });
    const { env, id } = await puppet();
    const base = `http://127.0.0.1:${server.port}/v2/${endpoint}`;
    const starts = (name: string, text: string) =>
      expect(env[name]?.startsWith(text), `${name}=${env[name]}`).toBe(true);
    expect(id).toMatch(/^[a-z0-9]{14}$/);
    expect(env.RUNPOD_ENDPOINT_ID).toBe(endpoint);
    starts("RUNPOD_WEBHOOK_GET_JOB", `${base}/job-take/$ID?`);
    starts("RUNPOD_WEBHOOK_POST_OUTPUT", `${base}/job-done/$RUNPOD_POD_ID/$ID?`);
    starts("RUNPOD_WEBHOOK_POST_STREAM", `${base}/job-stream/$RUNPOD_POD_ID/$ID?`);
    expect(env.RUNPOD_WEBHOOK_PING).toBe(`${base}/ping/$RUNPOD_POD_ID`);
    expect(env.RUNPOD_AI_API_KEY?.length).toBeGreaterThanOrEqual(20);
    expect(env.RUNPOD_WEBHOOK_GET_JOB).toContain(`token=${env.RUNPOD_AI_API_KEY}`);
    expect(env.RUNPOD_PING_INTERVAL).toBe("4000");
    expect(env).toMatchObject({ RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: "true", RUNPOD_DEBUG_LEVEL: "INFO" });
    for (const fact of ["POD_HOSTNAME", "GPU_COUNT", "DC_ID", "CPU_COUNT", "MEM_GB"]) {
      expect(env, fact).toHaveProperty(`RUNPOD_${fact}`);
    }
    expect(env.GREETING).toBe("hello world");
    expect(env.HOME?.startsWith(server.dataDir)).toBe(true);
    expect(JSON.stringify(env)).not.toContain(server.key);
    for (const name of ["MILLRACE_API_KEY", "MILLRACE_DATA_DIR", "MILLRACE_PORT", "SECRET_OF_THE_HOST"]) {
      expect(env).not.toHaveProperty(name);
    }
  });

  it("the template's env, which overrides defaults but never the protocol's variables", async (test) => {
    const wanted = { RUNPOD_DEBUG_LEVEL: "DEBUG", HOME: "/tmp", RUNPOD_POD_ID: "mine", RUNPOD_AI_API_KEY: "mine" };
    const { id: endpoint, puppet } = await makePuppets(test, server, {}, wanted);
    const { env } = await puppet();
    expect(env).toMatchObject({ RUNPOD_DEBUG_LEVEL: "DEBUG", HOME: "/tmp" });
    expect(env.RUNPOD_POD_ID).toMatch(/^[a-z0-9]{14}$/);
    expect(env.RUNPOD_AI_API_KEY).not.toBe("mine");
    expect(env.RUNPOD_ENDPOINT_ID).toBe(endpoint);
  });

  it("a unique secret and id", async (test) => {
    const { puppet } = await makePuppets(test, server, { workersMin: 2, workersMax: 2 });
    const [one, two] = [await puppet(0), await puppet(1)];
    expect(one.id).not.toBe(two.id);
    expect(one.env.RUNPOD_AI_API_KEY).not.toBe(two.env.RUNPOD_AI_API_KEY);
  });
});

describe.concurrent("a take", () => {
  it("is a job of exactly `id` and `input`, with the other fields that were submitted", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const plain = await submit(server, endpoint, { a: 1 }, { unknown: true });
    expect((await worker.take()).body).toEqual({ id: plain, input: { a: 1 } });
    await worker.done(plain, {});
    const more = {
      webhook: "http://127.0.0.1:9/hook",
      policy: { executionTimeout: 60_000, ttl: 120_000, lowPriority: false },
      s3Config: { accessId: "a", accessSecret: "b", bucketName: "c", endpointUrl: "d" },
    };
    const full = await submit(server, endpoint, {}, { ...more, unknown: true });
    expect((await worker.take()).body).toEqual({ id: full, input: {}, ...more });
  });

  it("is held until there is a job", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const take = worker.take();
    expect(await isHeld(server, endpoint, take)).toBe(true);
    const job = await submit(server, endpoint);
    const answer = await take;
    expect([answer.status, answer.body.id]).toEqual([200, job]);
    expect((await statusOf(server, endpoint, job)).workerId).toBe(worker.id);
  });

  it("is held for takeHoldMs (20 seconds) and then returns no content, as do polls for stops and polls of ended workers", async (test) => {
    expect(limits.takeHoldMs).toBe(20_000);
    const own = await startServer({}, { takeHoldMs: 3_000 });
    test.onTestFinished(() => own.end());
    const { id: endpoint, puppet } = await makePuppets(test, own, { workersMin: 2, workersMax: 2 });
    const [worker, ended] = [await puppet(0), await puppet(1)];
    await ended.take({ signal: AbortSignal.timeout(100) }).catch(() => undefined);
    ended.kill();
    await until(async () => (await ended.ping()).status === 401);
    const begun = performance.now();
    const asked = { take: worker.take(), stops: worker.stops(), endedTake: ended.take(), endedStops: ended.stops() };
    const polls = Object.entries(asked).map(async ([name, poll]) => {
      const { status, text } = await poll;
      return { name, status, text, heldMs: performance.now() - begun };
    });
    for (const { name, status, text, heldMs } of await within(test, own, 6_000, () => Promise.all(polls))) {
      expect([status, text], name).toEqual([204, ""]);
      expect(heldMs, name).toBeGreaterThan(2_700);
    }
    expect((await healthOf(own, endpoint)).workers.ready).toBeGreaterThan(0);
  });

  it("returns a batch in order, as a list with at most the requested number", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const jobs = [];
    for (let n = 0; n < 5; n++) jobs.push(await submit(server, endpoint, { n }));
    const first = await worker.takeBatch(3);
    expect(first.status).toBe(200);
    expect(first.body).toEqual(jobs.slice(0, 3).map((id, n) => ({ id, input: { n } })));
    const rest = await worker.takeBatch(10, true);
    expect(rest.body.map((one: { id: string }) => one.id)).toEqual(jobs.slice(3));
    for (const job of jobs) expect((await worker.done(job, { output: job })).status).toBe(200);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ completed: 5, retried: 0 });
  });

  it("is never refused for its query", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    for (const size of ["abc", "-1", "0", "", "1e9"]) {
      const job = await submit(server, endpoint);
      const answer = await worker.takeBatch(size);
      expect([answer.status, answer.body?.[0]?.id], `batch_size=${size}`).toEqual([200, job]);
      await worker.done(job, {});
    }
    const job = await submit(server, endpoint);
    const url = worker.takeUrl(true).replace("job_in_progress=1", "job_in_progress=maybe&gpu=%ff");
    const answer = await worker.call("GET", url);
    expect([answer.status, answer.body?.id]).toEqual([200, job]);
  });

  it("whose client is gone gives its job back, and that start does not count", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const hangUp = new AbortController();
    const poll = worker.take({ signal: hangUp.signal }).catch(() => undefined);
    expect(await isHeld(server, endpoint, poll)).toBe(true);
    hangUp.abort();
    await poll;
    const job = await submit(server, endpoint);
    const answer = await worker.take();
    const body = await statusOf(server, endpoint, job);
    expect([answer.status, answer.body?.id], JSON.stringify(body)).toEqual([200, job]);
    expect(body).toMatchObject({ status: "IN_PROGRESS", retries: 0 });
  });
});

describe.concurrent("progress", () => {
  it("is shown while the job runs, and gone afterwards", async (test) => {
    const { worker, job, status } = await makeHeld(test, server);
    for (const output of ["10 %", { step: 2 }]) {
      expect((await worker.done(job, { status: "IN_PROGRESS", output })).status).toBe(200);
      expect(await status()).toMatchObject({ status: "IN_PROGRESS", output });
    }
    await worker.done(job, {});
    const body = await status();
    expect(body.status).toBe("COMPLETED");
    expect(body).not.toHaveProperty("output");
  });

  it("is cleared when the job is given back", async (test) => {
    const { worker, job, status } = await makeHeld(test, server);
    await worker.done(job, { status: "IN_PROGRESS", output: "half" });
    expect((await worker.take()).body.id).toBe(job);
    const body = await status();
    expect(body).toMatchObject({ status: "IN_PROGRESS", retries: 1 });
    expect(body).not.toHaveProperty("output");
  });
});

describe.concurrent("a chunk", () => {
  it("counts each time it arrives, equal or not, and is skipped if it is not JSON", async (test) => {
    const { worker, job, endpoint } = await makeHeld(test, server);
    const words = ['{"output":"a"}', '{"output":"a"}', '{"output": NaN}', "not json", '{"output":"b"}'];
    for (const text of words) expect((await worker.chunk(job, text)).status).toBe(200);
    await worker.done(job, { output: [] }, true);
    const { body } = await call(server, "GET", `/sdk/v2/${endpoint}/stream/${job}`);
    expect(body.status).toBe("COMPLETED");
    expect(body.stream.map((one: { output: unknown }) => one.output)).toEqual(["a", "a", "b"]);
    expect((await statusOf(server, endpoint, job)).output).toEqual([]);
  });
});

describe.concurrent("a worker's secret", () => {
  it("is required on every call", async (test) => {
    const { worker, job, status } = await makeHeld(test, server);
    const bare = (url: string) => url.replace(/token=[^&]*/, "token=wrong");
    const headers = { authorization: "wrong" };
    for (const [method, url, body] of [
      ["GET", bare(worker.takeUrl(true)), undefined],
      ["GET", bare(worker.stopUrl()), undefined],
      ["POST", bare(worker.doneUrl(job)), '{"output":1}'],
      ["POST", bare(worker.chunkUrl(job)), '{"output":1}'],
      ["GET", worker.pingUrl([job]), undefined],
    ] as const) {
      expect((await worker.call(method, url, body, { headers })).status, url).toBe(401);
    }
    expect((await status()).status).toBe("IN_PROGRESS");
  });

  it("is taken from the token even if Authorization holds another key, which is not logged", async (test) => {
    const { worker, job, status } = await makeHeld(test, server);
    const headers = { authorization: "Bearer rpa_key_of_the_users_own_config" };
    expect((await worker.call("POST", worker.doneUrl(job), '{"output":1}', { headers })).status).toBe(200);
    expect((await status()).status).toBe("COMPLETED");
    expect(server.log()).not.toContain("rpa_key_of_the_users_own_config");
    expect(server.log()).not.toContain(worker.env.RUNPOD_AI_API_KEY);
  });

  it("opens this worker's calls, and nothing else", async (test) => {
    const { worker, job, endpoint } = await makeHeld(test, server);
    const other = await (await makePuppets(test, server)).puppet();
    const secret = worker.env.RUNPOD_AI_API_KEY as string;
    for (const authorization of [secret, `Bearer ${secret}`]) {
      for (const [method, path] of [
        ["GET", `/v2/${endpoint}/health`],
        ["GET", `/v2/${endpoint}/status/${job}`],
        ["POST", `/v2/${endpoint}/run`],
        ["GET", "/v1/endpoints"],
      ] as const) {
        expect((await call(server, method, path, undefined, { authorization })).status, path).toBe(401);
      }
    }
    const asOther = (url: string) =>
      url.replace(/token=[^&]*/, `token=${secret}`).replace(other.env.RUNPOD_AI_API_KEY as string, secret);
    const headers = { authorization: secret };
    for (const url of [other.takeUrl(true), other.stopUrl(), other.pingUrl()]) {
      const signal = AbortSignal.timeout(5_000);
      expect((await other.call("GET", asOther(url), undefined, { headers, signal })).status, url).toBe(401);
    }
  });

  it("of an ended worker opens nothing: its results are dropped, its pings refused", async (test) => {
    const { worker, job, status, puppet } = await makeHeld(test, server);
    worker.kill();
    await until(async () => (await status()).status === "IN_QUEUE");
    expect((await worker.done(job, { output: "late" })).status).toBe(200);
    expect((await worker.chunk(job, { output: "late" })).status).toBe(200);
    expect((await worker.ping([job])).status).toBe(401);
    expect(await status()).toMatchObject({ status: "IN_QUEUE", retries: 1 });
    const fresh = await puppet(1);
    expect((await fresh.take()).body.id).toBe(job);
    expect((await worker.done(job, { output: "late" })).status).toBe(200);
    expect((await status()).status).toBe("IN_PROGRESS");
  });
});
