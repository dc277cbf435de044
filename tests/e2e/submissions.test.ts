import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../harness.js";
import { makeFolder, makeQueue, makeRunning } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { expectRefusal, headOf, healthOf, openRaw, reach, statusOf, submit, textCall, unknownJob } from "./wire.js";

const uuid7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
const MB = 2 ** 20;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const post = (path: string, body?: unknown, headers?: Record<string, string>) =>
  call(server, "POST", `/v2/${path}`, body, headers);
const get = (path: string) => call(server, "GET", `/v2/${path}`);

describe.concurrent("/run", () => {
  it("answers 200 with an id made of a UUIDv7, and IN_QUEUE, and nothing else", async (test) => {
    const endpoint = await makeQueue(test, server);
    const reply = await post(`${endpoint}/run`, { input: {} });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({ id: expect.stringMatching(new RegExp(`^${uuid7}-u1$`)), status: "IN_QUEUE" });
  });

  it("takes a job that its worker completes", async (test) => {
    const endpoint = await makeRunning(test, server);
    const gate = join(makeFolder(test), "open");
    const begunAt = Date.now();
    const job = await submit(server, endpoint, { echo: { answer: 42 }, gate });
    await reach(server, endpoint, job, "IN_PROGRESS");
    const takenBy = Date.now();
    await statusOf(server, endpoint, job); // a round trip, so that the job takes some time
    const openedAt = Date.now();
    writeFileSync(gate, "");
    const body = await reach(server, endpoint, job, "COMPLETED");
    const endedBy = Date.now();
    expect(body).toMatchObject({ id: job, output: { answer: 42 }, retries: 0 });
    // the server's times lie within those of its client, up to a rounded millisecond
    expect(body.executionTime).toBeGreaterThanOrEqual(openedAt - takenBy - 1);
    expect(body.delayTime).toBeGreaterThan(0); // it had to start a worker
    expect(body.delayTime).toBeLessThanOrEqual(takenBy - begunAt + 1);
    expect(body.delayTime + body.executionTime).toBeLessThanOrEqual(endedBy - begunAt + 1);
    expect(Number.isInteger(body.delayTime) && Number.isInteger(body.executionTime)).toBe(true);
    expect(body.workerId).toMatch(/^[a-z0-9]{14}$/);
    expect(body).not.toHaveProperty("error");
    expect(body).not.toHaveProperty("waitReason");
  });

  it("refuses an input that is not an object", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const input of [null, [], [{}], "text", 7, true]) {
      expectRefusal(await post(`${endpoint}/run`, { input }), 400, /input/);
      expectRefusal(await post(`${endpoint}/runsync`, { input }), 400, /input/);
    }
    expectRefusal(await post(`${endpoint}/run`, {}), 400, /input/);
    for (const body of ["null", "[]", '"text"', "7"]) expectRefusal(await post(`${endpoint}/run`, body), 400);
    expect((await healthOf(server, endpoint)).jobs.inQueue).toBe(0);
  });

  it("refuses a body that is not JSON", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const body of ["", "{", '{"input":{}}x', "{'input':{}}", '{"input":{"a":NaN}}', "input={}"]) {
      expectRefusal(await post(`${endpoint}/run`, body, { "content-type": "application/json" }), 400);
    }
  });

  it("refuses JSON nested a million deep, and an object of half a million keys", async (test) => {
    const endpoint = await makeQueue(test, server);
    const deep = `{"input":{"a":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}}`;
    expectRefusal(await post(`${endpoint}/run`, deep), 400);
    const keys = Array.from({ length: 500_000 }, (_, at) => `"k${at}":0`).join(",");
    expectRefusal(await post(`${endpoint}/run`, `{"input":{${keys}}}`), 400);
  });

  it("parses the body as JSON under any content type", async (test) => {
    const endpoint = await makeQueue(test, server);
    const types = ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream", "garbage"];
    for (const type of types) {
      const reply = await post(`${endpoint}/run`, '{"input":{}}', { "content-type": type });
      expect(reply.status, type).toBe(200);
    }
  });

  it("holds the policy to its bounds, and names the field", async (test) => {
    const endpoint = await makeQueue(test, server);
    const wrong: [string, unknown][] = [
      ...[4_999, 604_800_001, 5_000.5, "5000", -1].map((value): [string, unknown] => ["executionTimeout", value]),
      ...[9_999, 604_800_001, 10_000.5, "10000"].map((value): [string, unknown] => ["ttl", value]),
      ["lowPriority", "yes"],
      ["lowPriority", 1],
    ];
    for (const [field, value] of wrong) {
      const reply = await post(`${endpoint}/run`, { input: {}, policy: { [field]: value } });
      expectRefusal(reply, 400, new RegExp(field));
    }
    for (const policy of [7, "text", []]) {
      expectRefusal(await post(`${endpoint}/run`, { input: {}, policy }), 400, /policy/);
    }
    for (const [executionTimeout, ttl] of [
      [5_000, 10_000],
      [604_800_000, 604_800_000],
    ]) {
      const policy = { executionTimeout, ttl, lowPriority: true };
      expect((await post(`${endpoint}/run`, { input: {}, policy })).status).toBe(200);
    }
  });

  it("takes http and https webhooks only", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const webhook of ["example", "ftp://example.com/", "javascript:alert(1)", "http://", 7, {}]) {
      expectRefusal(await post(`${endpoint}/run`, { input: {}, webhook }), 400, /webhook/);
    }
    for (const webhook of ["http://example.com/hook?a=b", "https://example.com/"]) {
      expect((await post(`${endpoint}/run`, { input: {}, webhook })).status).toBe(200);
    }
  });

  it("accepts any string fields in s3Config, unknown ones included", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const field of ["accessId", "accessSecret", "bucketName", "endpointUrl"]) {
      const reply = await post(`${endpoint}/run`, { input: {}, s3Config: { [field]: 7 } });
      expectRefusal(reply, 400, new RegExp(`s3Config.*${field}`));
    }
    expectRefusal(await post(`${endpoint}/run`, { input: {}, s3Config: "text" }), 400, /s3Config/);
    const s3Config = { accessId: "a", accessSecret: "b", bucketName: "c", endpointUrl: "d", region: "e" };
    expect((await post(`${endpoint}/run`, { input: {}, s3Config })).status).toBe(200);
  });

  it("ignores unknown fields", async (test) => {
    const endpoint = await makeQueue(test, server);
    const reply = await post(`${endpoint}/run`, { input: {}, priority: 9, output: 1, id: "mine", status: "COMPLETED" });
    expect(reply.status).toBe(200);
    expect(reply.body.id).not.toBe("mine");
    expect((await statusOf(server, endpoint, reply.body.id)).status).toBe("IN_QUEUE");
  });

  it("passes input and output on as the text they arrived as", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const texts = [
      '{"b":12345678901234567890,"a":1e400,"2":1.0,"1":-0,"é":"\\u00e9\\/\\ud83d"}',
      '{"twice":1,"twice":2}',
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}',
      '{ "spaces" :\t[ 1 ,2 ] }',
    ];
    const worker = await puppet();
    for (const text of texts) {
      const sent = await textCall(server, "POST", `/v2/${endpoint}/run`, `{"x":1, "input":${text}}`);
      expect(sent.status, sent.text).toBe(200);
      const job = JSON.parse(sent.text).id;
      const taken = await worker.take();
      expect(taken.text).toContain(text);
      expect(taken.body.id).toBe(job);
      expect((await worker.done(job, `{"output":${text}}`)).status).toBe(200);
      const shown = await textCall(server, "GET", `/v2/${endpoint}/status/${job}`);
      expect(shown.text).toContain(text);
      expect(JSON.parse(shown.text).status).toBe("COMPLETED");
    }
  });

  it("refuses a body that is not UTF-8", async (test) => {
    const endpoint = await makeQueue(test, server);
    const body = Buffer.concat([Buffer.from('{"input":{"a":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}}')]);
    const reply = await textCall(server, "POST", `/v2/${endpoint}/run`, new Uint8Array(body));
    expect(reply.status).toBe(400);
    expect((await healthOf(server, endpoint)).jobs.inQueue).toBe(0);
  });

  it("refuses a body with a content encoding", async (test) => {
    const endpoint = await makeQueue(test, server);
    const body = new Uint8Array(gzipSync('{"input":{}}'));
    const reply = await textCall(server, "POST", `/v2/${endpoint}/run`, body, { "content-encoding": "gzip" });
    expect(reply.status).toBe(415);
    expect(JSON.parse(reply.text)).toMatchObject({ error: expect.any(String), code: expect.any(String) });
  });
});

describe.concurrent("the key", () => {
  it("is taken as a bearer token and bare", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const authorization of [`Bearer ${server.key}`, server.key]) {
      const reply = await call(server, "GET", `/v2/${endpoint}/health`, undefined, { authorization });
      expect(reply.status).toBe(200);
    }
  });

  it("is checked before anything else", async (test) => {
    const endpoint = await makeQueue(test, server);
    const wrong = ["", "Bearer ", "Bearer wrong", "wrong", `Basic ${server.key}`, `Bearer ${server.key}x`];
    for (const authorization of wrong) {
      for (const [method, path, body] of [
        ["POST", `/v2/${endpoint}/run`, { input: 7 }],
        ["GET", `/v2/${endpoint}/health`, undefined],
        ["GET", "/v2/unknown0000000/health", undefined],
        ["GET", `/v2/${endpoint}/status/${unknownJob}`, undefined],
      ] as const) {
        expectRefusal(await call(server, method, path, body, { authorization }), 401);
      }
    }
    const none = await fetch(`${server.url}/v2/${endpoint}/health`);
    expectRefusal({ status: none.status, headers: none.headers, body: await none.json() }, 401);
  });

  it("is checked before the endpoint, and the endpoint before the body", async () => {
    const unknown = "unknown0000000";
    expectRefusal(await post(`${unknown}/run`, "{not json"), 404);
    expectRefusal(await post(`${unknown}/runsync?wait=1`, { input: 7 }), 404);
    for (const path of [`cancel/${unknownJob}`, `retry/${unknownJob}`, "purge-queue"]) {
      expectRefusal(await post(`${unknown}/${path}`), 404);
    }
    for (const path of [
      `status/${unknownJob}`,
      `status-sync/${unknownJob}`,
      `stream/${unknownJob}`,
      "health",
      "requests",
    ]) {
      expectRefusal(await get(`${unknown}/${path}`), 404);
    }
    const socket = await openRaw(server.port);
    await socket.write(headOf(server, "POST", `/v2/${unknown}/run`, `Content-Length: ${30 * MB}`));
    expect(await socket.status(5_000)).toBe(404);
    socket.end();
  });
});

describe.concurrent("every reply", () => {
  it("has a unique request id", async (test) => {
    const endpoint = await makeQueue(test, server);
    const ids = await Promise.all(
      Array.from({ length: 5 }, async () => (await get(`${endpoint}/health`)).headers.get("x-request-id")),
    );
    expect(new Set(ids).size).toBe(5);
    for (const id of ids) expect(id).toMatch(/\S/);
  });

  it("is an error with a body if the path is unknown", async (test) => {
    const endpoint = await makeQueue(test, server);
    expectRefusal(await get(`${endpoint}/nonsense`), 404);
    expectRefusal(await call(server, "GET", "/v1/nonsense"), 404);
  });

  it("has nosniff, and no header that admits other origins", async (test) => {
    const endpoint = await makeQueue(test, server);
    const reply = await call(server, "GET", `/v2/${endpoint}/health`, undefined, { origin: "https://example.com" });
    expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
    expect(reply.headers.get("access-control-allow-origin")).not.toBe("*");
  });
});

describe.concurrent("a secret of a submission", () => {
  it("is passed to the worker and shown nowhere else", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const secret = "s3-secret-that-nobody-sees";
    const s3Config = { accessId: "id", accessSecret: secret, bucketName: "b", endpointUrl: "http://s3", region: "r" };
    const job = await submit(server, endpoint, {}, { s3Config });
    const shown = async () =>
      (await textCall(server, "GET", `/v2/${endpoint}/status/${job}`)).text +
      (await textCall(server, "GET", `/v2/${endpoint}/requests`)).text;
    expect(await shown()).not.toContain(secret);
    const worker = await puppet();
    expect((await worker.take()).body.s3Config).toEqual(s3Config);
    expect(await shown()).not.toContain(secret);
    await worker.done(job, { output: "done" });
    expect(await shown()).not.toContain(secret);
    expect(server.log()).not.toContain(secret);
  });
});
