import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeQueue } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { type Body, healthOf, openRaw, reach, statusOf } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const post = (path: string, key: string, body: unknown) =>
  call(server, "POST", `/v2/${path}`, body, { "idempotency-key": key });
const waiting = async (endpoint: string): Promise<number> => (await healthOf(server, endpoint)).jobs.inQueue;

function expectConflict(reply: { status: number; body: Body }) {
  expect(reply.status, JSON.stringify(reply.body)).toBe(400);
  expect(reply.body).toEqual({
    error: expect.stringMatching(/\S/),
    code: expect.any(String),
    requestId: expect.any(String),
  });
}

describe.concurrent("an idempotency key", () => {
  it("gives the first job again, with its present status, and never a second job", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const body = { input: { n: 1 } };
    const first = await post(`${endpoint}/run`, "once", body);
    expect(first.body.status).toBe("IN_QUEUE");
    expect((await post(`${endpoint}/run`, "once", body)).body).toEqual(first.body);
    expect(await waiting(endpoint)).toBe(1);
    await worker.take();
    const id = first.body.id;
    expect((await post(`${endpoint}/run`, "once", body)).body).toEqual({ id, status: "IN_PROGRESS" });
    await worker.done(id, { output: 1 });
    expect((await post(`${endpoint}/run`, "once", body)).body).toEqual({ id, status: "COMPLETED" });
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ completed: 1, inQueue: 0, inProgress: 0 });
  });

  it("gives one job to twenty calls at once", async (test) => {
    const endpoint = await makeQueue(test, server);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => post(`${endpoint}/run`, "race", { input: { same: true } })),
    );
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200]));
    expect(new Set(replies.map((reply) => reply.body.id)).size).toBe(1);
    expect(await waiting(endpoint)).toBe(1);
  });

  it("makes /runsync wait for the first job, and answer as usual", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const calls = [1, 2].map(() => post(`${endpoint}/runsync`, "sync", { input: {} }));
    const worker = await puppet();
    const { body } = await worker.take();
    await until(async () => (await healthOf(server, endpoint)).jobs.inProgress === 1);
    await worker.done(body.id, { output: "shared" });
    for (const reply of await Promise.all(calls)) {
      expect(reply.status).toBe(200);
      expect(reply.body).toMatchObject({ id: body.id, status: "COMPLETED", output: "shared" });
    }
    const later = await post(`${endpoint}/runsync`, "sync", { input: {} });
    expect(later.body).toMatchObject({ id: body.id, status: "COMPLETED", output: "shared" });
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ completed: 1, inQueue: 0 });
  });

  it("is refused with a body whose bytes differ", async (test) => {
    const endpoint = await makeQueue(test, server);
    const first = await post(`${endpoint}/run`, "bytes", '{"input":{"a":1}}');
    expect(first.status).toBe(200);
    expectConflict(await post(`${endpoint}/run`, "bytes", '{"input":{"a":2}}'));
    expectConflict(await post(`${endpoint}/run`, "bytes", '{"input": {"a":1}}'));
    expect((await post(`${endpoint}/run`, "bytes", '{"input":{"a":1}}')).body.id).toBe(first.body.id);
    expect(await waiting(endpoint)).toBe(1);
  });

  it("is refused on another route", async (test) => {
    const endpoint = await makeQueue(test, server);
    await post(`${endpoint}/run`, "route", { input: {} });
    expectConflict(await post(`${endpoint}/runsync?wait=1000`, "route", { input: {} }));
    expect(await waiting(endpoint)).toBe(1);
  });

  it("is a different key on another endpoint, and keys differ by case", async (test) => {
    const [one, two] = [await makeQueue(test, server), await makeQueue(test, server)];
    const replies = await Promise.all([
      post(`${one}/run`, "shared", { input: {} }),
      post(`${two}/run`, "shared", { input: {} }),
      post(`${one}/run`, "SHARED", { input: {} }),
    ]);
    expect(new Set(replies.map((reply) => reply.body.id)).size).toBe(3);
  });

  it("has 1 to 255 visible ASCII characters", async (test) => {
    const endpoint = await makeQueue(test, server);
    for (const key of ["", "k".repeat(256), "two words", "tab\tbed", "caf\u00e9"]) {
      expectConflict(await post(`${endpoint}/run`, key, { input: {} }));
    }
    expect(await waiting(endpoint)).toBe(0);
    for (const key of ["k".repeat(255), "!", "~\"'{}%;--"]) {
      const reply = await post(`${endpoint}/run`, key, { input: {} });
      expect(reply.status, key).toBe(200);
      expect((await post(`${endpoint}/run`, key, { input: {} })).body.id).toBe(reply.body.id);
    }
  });

  it("is not used up by a refused submission", async (test) => {
    const endpoint = await makeQueue(test, server);
    expectConflict(await post(`${endpoint}/run`, "refused", { input: 7 }));
    expectConflict(await post(`${endpoint}/run`, "refused", "{not json"));
    expect((await post(`${endpoint}/run`, "refused", { input: {} })).status).toBe(200);
  });

  it("outlives its job: then only the id and the last status are returned", async (test) => {
    const endpoint = await makeQueue(test, server);
    const body = { input: {}, policy: { ttl: 10_000 } };
    const { id } = (await post(`${endpoint}/run`, "outlived", body)).body;
    const sync = (await post(`${endpoint}/runsync?wait=1000`, "outlived-too", body)).body.id;
    const cancelled = (await post(`${endpoint}/run`, "cancelled", body)).body.id;
    await call(server, "POST", `/v2/${endpoint}/cancel/${cancelled}`);
    for (const job of [id, sync, cancelled]) {
      await until(async () => (await call(server, "GET", `/v2/${endpoint}/status/${job}`)).status === 404, 20_000);
    }
    for (const [route, key, job, status] of [
      ["run", "outlived", id, "IN_QUEUE"],
      ["runsync?wait=1000", "outlived-too", sync, "IN_QUEUE"],
      ["run", "cancelled", cancelled, "CANCELLED"],
    ]) {
      const reply = await post(`${endpoint}/${route}`, key, body);
      expect([reply.status, reply.body]).toEqual([200, { id: job, status, expired: true }]);
    }
    expectConflict(await post(`${endpoint}/run`, "outlived", { input: { other: 1 } }));
    expect(await waiting(endpoint)).toBe(0);
  });
});

it("a header given twice is refused", async (test) => {
  const endpoint = await makeQueue(test, server);
  const socket = await openRaw(server.port);
  const lines = [`POST /v2/${endpoint}/run HTTP/1.1`, "Host: 127.0.0.1", `Authorization: ${server.key}`];
  const keys = ["Idempotency-Key: a", "Idempotency-Key: b", "Content-Length: 12"];
  await socket.write(`${[...lines, ...keys].join("\r\n")}\r\n\r\n{"input":{}}`);
  expect(await socket.status(5_000)).toBe(400);
  socket.end();
});

it("a key gives its job again after a kill -9", async (test) => {
  const own = await startServer();
  test.onTestFinished(() => own.end());
  const endpoint = await makeQueue(test, own);
  const submit = () => call(own, "POST", `/v2/${endpoint}/run`, { input: { n: 1 } }, { "idempotency-key": "crash" });
  const first = await submit();
  await own.kill();
  await own.restart();
  const again = await submit();
  expect([again.status, again.body]).toEqual([200, { id: first.body.id, status: "IN_QUEUE" }]);
  expect((await healthOf(own, endpoint)).jobs.inQueue).toBe(1);
  const other = await call(own, "POST", `/v2/${endpoint}/run`, { input: {} }, { "idempotency-key": "crash" });
  expect(other.status).toBe(400);
});

it("the key of a retried job still gives the same job", async (test) => {
  const { id: endpoint, puppet } = await makePuppets(test, server);
  const worker = await puppet();
  const { id } = (await post(`${endpoint}/run`, "retried", { input: {} })).body;
  await worker.take();
  await worker.done(id, { error: "first" });
  expect((await statusOf(server, endpoint, id)).status).toBe("FAILED");
  expect((await post(`${endpoint}/run`, "retried", { input: {} })).body).toEqual({ id, status: "FAILED" });
  await call(server, "POST", `/v2/${endpoint}/retry/${id}`);
  expect((await post(`${endpoint}/run`, "retried", { input: {} })).body).toEqual({ id, status: "IN_QUEUE" });
  await worker.take();
  await worker.done(id, {});
  await reach(server, endpoint, id, "COMPLETED");
});
