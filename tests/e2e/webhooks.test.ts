import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { call, freePort, startServer, type TestServer, until } from "../harness.js";
import { makeQueue, makeRunning } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { type Body, reach, statusOf, submit } from "./wire.js";

/** One webhook request. */
interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Body;
  readonly at: number;
}

/** Answers each path with its statuses in turn, and keeps repeating the last one. */
async function startReceiver(port: number, answers: Map<string, number[]>, received: Received[]): Promise<Server> {
  const receiver = createServer((request, reply) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => {
      const path = request.url ?? "";
      received.push({
        method: request.method ?? "",
        path,
        headers: request.headers,
        text,
        body: JSON.parse(text || "null"),
        at: Date.now(),
      });
      const statuses = answers.get(path) ?? [200];
      const status = statuses.length > 1 ? (statuses.shift() as number) : (statuses[0] as number);
      reply.writeHead(status, status >= 300 && status < 400 ? { location: "/elsewhere" } : {}).end();
    });
  });
  await new Promise<void>((done) => receiver.listen(port, "127.0.0.1", done));
  return receiver;
}

let server: TestServer;
let receiver: Server;
let port: number;
const answers = new Map<string, number[]>();
const received: Received[] = [];
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  port = await freePort();
  receiver = await startReceiver(port, answers, received);
});
afterAll(async () => {
  await server?.end();
  receiver?.closeAllConnections();
  receiver?.close();
});

const hook = (path: string) => `http://127.0.0.1:${port}${path}`;
const callsOf = (path: string) => received.filter((one) => one.path === path);
const callOf = (path: string, n = 0, withinMs?: number) => until(() => callsOf(path)[n], withinMs);
const deliveriesOf = async (job: string, of = server): Promise<Body[]> => {
  const reply = await call(of, "GET", `/v1/webhooks/deliveries?jobId=${job}`);
  expect(reply.status).toBe(200);
  return reply.body;
};

/** Computes the Standard Webhooks signature of a call by hand. */
async function signatureOf({ headers, text }: Received, of = server): Promise<string> {
  const { body } = await call(of, "GET", "/v1/webhooks/secret");
  expect(Object.keys(body)).toEqual(["secret"]);
  expect(body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{32,}=*$/);
  const key = Buffer.from(body.secret.slice("whsec_".length), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`;
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}

describe.concurrent("a webhook", () => {
  it("carries the job's status, input and address, and is signed", async (test) => {
    const endpoint = await makeRunning(test, server);
    const webhook = hook("/completed?token=1");
    const input = { echo: { answer: 42 }, name: "n" };
    const begunAt = Date.now();
    const job = await submit(server, endpoint, input, { webhook });
    const got = await callOf("/completed?token=1");
    expect(got.method).toBe("POST");
    expect(got.headers["content-type"]).toMatch(/^application\/json/);
    const status = await statusOf(server, endpoint, job);
    expect(got.body).toEqual({ ...status, input, webhook });
    expect(got.body).toMatchObject({ id: job, status: "COMPLETED", output: { answer: 42 } });
    expect(got.headers["webhook-id"]).toMatch(/\S/);
    const timestampMs = Number(got.headers["webhook-timestamp"]) * 1_000; // of whole seconds
    expect(timestampMs).toBeGreaterThan(begunAt - 1_000);
    expect(timestampMs).toBeLessThanOrEqual(got.at + 1_000);
    expect(String(got.headers["webhook-signature"]).split(" ")).toContain(await signatureOf(got));
    const delivery = await until(async () => {
      const [one] = await deliveriesOf(job);
      return one?.state === "delivered" && one;
    });
    expect(delivery).toMatchObject({ jobId: job, url: webhook });
    expect(delivery.attempts).toHaveLength(1);
    expect(delivery.attempts[0]).toMatchObject({ status: 200, at: expect.stringMatching(/^\d{4}-/) });
    const { at, durationMs } = delivery.attempts[0];
    // the call came during the attempt, up to a rounded millisecond
    expect(Date.parse(at)).toBeLessThanOrEqual(got.at + 1);
    expect(Date.parse(at) + durationMs).toBeGreaterThanOrEqual(got.at - 1);
    expect(callsOf("/completed?token=1")).toHaveLength(1);
  });

  it("passes input and output on as the text they arrived as", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const text = '{"n":12345678901234567890,"twice":1,"twice":2}';
    const sent = `{"input":${text},"webhook":"${hook("/text")}"}`;
    const { body } = await call(server, "POST", `/v2/${endpoint}/run`, sent);
    const worker = await puppet();
    await worker.take();
    await worker.done(body.id, `{"output":${text}}`);
    const got = await callOf("/text");
    expect(got.text.split(text)).toHaveLength(3); // once as input, once as output
    expect(String(got.headers["webhook-signature"]).split(" ")).toContain(await signatureOf(got));
  });

  it("is sent for a job that failed, was cancelled, or was purged", async (test) => {
    const queue = await makeQueue(test, server);
    const running = await makeRunning(test, server);
    const failed = await submit(server, running, { fail: "no such model" }, { webhook: hook("/failed") });
    const cancelled = await submit(server, queue, {}, { webhook: hook("/cancelled") });
    await call(server, "POST", `/v2/${queue}/cancel/${cancelled}`);
    const purged = await submit(server, queue, {}, { webhook: hook("/purged") });
    await call(server, "POST", `/v2/${queue}/purge-queue`);
    expect((await callOf("/failed")).body).toMatchObject({
      id: failed,
      status: "FAILED",
      error: expect.stringContaining("no such model"),
    });
    expect((await callOf("/cancelled")).body).toMatchObject({ id: cancelled, status: "CANCELLED", input: {} });
    expect((await callOf("/purged")).body).toMatchObject({ id: purged, status: "CANCELLED" });
  });

  it("is sent for a job whose endpoint was deleted, and for one that timed out", async (test) => {
    const queue = await makeQueue(test, server);
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const policy = { executionTimeout: 5_000 };
    const late = await submit(server, endpoint, {}, { policy, webhook: hook("/timed-out") });
    await (await puppet()).take();
    const gone = await submit(server, queue, {}, { webhook: hook("/gone") });
    await call(server, "DELETE", `/sdk/v1/endpoints/${queue}`);
    const deleted = (await callOf("/gone")).body;
    expect(deleted).toMatchObject({ id: gone, status: "CANCELLED", error: expect.stringMatching(/endpoint deleted/) });
    expect((await callOf("/timed-out")).body).toMatchObject({ id: late, status: "TIMED_OUT" });
  });

  it("never carries the access secret", async (test) => {
    const endpoint = await makeRunning(test, server);
    const s3Config = { accessId: "id", accessSecret: "a-secret-of-the-bucket", bucketName: "b" };
    await submit(server, endpoint, { echo: 1 }, { webhook: hook("/secret"), s3Config });
    const got = await callOf("/secret");
    expect(got.text).not.toContain(s3Config.accessSecret);
    expect(JSON.stringify(got.headers)).not.toContain(s3Config.accessSecret);
  });

  it("is tried three times, ten seconds apart, under one id", { timeout: 60_000 }, async (test) => {
    expect(limits.webhookRetryMs).toBe(10_000);
    const retryMs = 1_500;
    const own = await startServer({}, { webhookRetryMs: retryMs });
    test.onTestFinished(() => own.end());
    const endpoint = await makeRunning(test, own);
    answers.set("/flaky", [500, 201, 503]);
    const job = await submit(own, endpoint, { echo: 1 }, { webhook: hook("/flaky") });
    const afterAttempt = (count: number) =>
      until(async () => {
        const [one] = await deliveriesOf(job, own);
        return one?.attempts.length === count && one;
      }, 40_000);
    const planned: number[] = [];
    for (const count of [1, 2]) {
      const { attempts, nextAttemptAt } = await afterAttempt(count);
      const { at, durationMs } = attempts[count - 1];
      planned.push(Date.parse(nextAttemptAt));
      expect(Date.parse(nextAttemptAt) - Date.parse(at) - durationMs).toBe(retryMs);
    }
    const delivery = await afterAttempt(3);
    expect(delivery.state).toBe("failed");
    expect(delivery.attempts.map((attempt: Body) => attempt.status)).toEqual([500, 201, 503]);
    const calls = callsOf("/flaky");
    expect(calls).toHaveLength(3);
    for (const [n, at] of planned.entries()) {
      expect(Date.parse(delivery.attempts[n + 1].at)).toBeGreaterThanOrEqual(at);
      expect(calls[n + 1]?.at).toBeGreaterThanOrEqual(at - 1);
    }
    expect(new Set(calls.map((one) => one.headers["webhook-id"])).size).toBe(1);
    for (const one of calls) {
      expect(String(one.headers["webhook-signature"]).split(" ")).toContain(await signatureOf(one, own));
    }
    expect((await statusOf(own, endpoint, job)).status).toBe("COMPLETED");
  });

  it("follows no redirect: a redirect is a failure", async (test) => {
    const endpoint = await makeRunning(test, server);
    answers.set("/moved", [302]);
    const job = await submit(server, endpoint, { echo: 1 }, { webhook: hook("/moved") });
    const delivery = await until(async () => {
      const [one] = await deliveriesOf(job);
      return one?.attempts.length > 0 && one;
    });
    expect(delivery.attempts[0]).toMatchObject({ status: 302 });
    expect(delivery.state).toBe("pending");
    expect(Date.parse(delivery.nextAttemptAt)).toBeGreaterThan(Date.now());
    expect(callsOf("/elsewhere")).toEqual([]);
  });

  it("without an answer is listed with its reason", async (test) => {
    const endpoint = await makeRunning(test, server);
    const webhook = `http://127.0.0.1:${await freePort()}/nobody`;
    const job = await submit(server, endpoint, { echo: 1 }, { webhook });
    const delivery = await until(async () => {
      const [one] = await deliveriesOf(job);
      return one?.attempts.length > 0 && one;
    });
    expect(delivery.attempts[0].error).toMatch(/\S/);
    expect(delivery.attempts[0]).not.toHaveProperty("status");
  });

  it("is sent again, under a new id, for a retried job", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(server, endpoint, {}, { webhook: hook("/again") });
    await worker.take();
    await worker.done(job, { error: "first" });
    const first = await callOf("/again");
    await call(server, "POST", `/v2/${endpoint}/retry/${job}`);
    await worker.take();
    await worker.done(job, { output: "second" });
    const second = await callOf("/again", 1);
    expect([first.body.status, second.body.status]).toEqual(["FAILED", "COMPLETED"]);
    expect(second.body).toMatchObject({ id: job, output: "second" });
    expect(second.headers["webhook-id"]).not.toBe(first.headers["webhook-id"]);
    expect(await deliveriesOf(job)).toHaveLength(2);
  });

  it("survives a kill -9 of the server", { timeout: 60_000 }, async (test) => {
    const own = await startServer();
    test.onTestFinished(() => own.end());
    const ownPort = await freePort();
    const endpoint = await makeQueue(test, own);
    const job = await submit(own, endpoint, {}, { webhook: `http://127.0.0.1:${ownPort}/kept` });
    await call(own, "POST", `/v2/${endpoint}/cancel/${job}`);
    await own.kill();
    const calls: Received[] = [];
    const late = await startReceiver(ownPort, new Map(), calls);
    test.onTestFinished(() => {
      late.closeAllConnections();
      late.close();
    });
    await own.restart();
    const got = await until(() => calls[0], 25_000);
    expect(got.body).toMatchObject({ id: job, status: "CANCELLED" });
    await reach(own, endpoint, job, "CANCELLED");
  });
});

it("deliveries and the secret are visible only to a key's owner", async () => {
  for (const path of ["/v1/webhooks/deliveries", "/v1/webhooks/secret"]) {
    expect((await call(server, "GET", path, undefined, { authorization: "Bearer wrong" })).status).toBe(401);
  }
});
