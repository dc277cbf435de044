import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endWith, makeFolder } from "../e2e/handlers.js";
import { isAlive } from "../e2e/puppet.js";
import { call, startServer, type TestServer, until } from "../harness.js";
import { type Balanced, exchange, makeBalanced } from "./balanced.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
});
afterAll(() => server.end());

const health = async ({ id }: Balanced) => (await call(server, "GET", `/v2/${id}/health`)).body;
const ready = (endpoint: Balanced, count = 1) =>
  until(async () => (await health(endpoint)).workers.ready === count, 30_000);
const patch = async ({ id }: Balanced, settings: Record<string, unknown>) =>
  expect((await call(server, "PATCH", `/v1/endpoints/${id}`, settings)).status).toBe(200);
const pidOf = async (endpoint: Balanced) => ((await (await endpoint.fetch("/")).json()) as { pid: number }).pid;

describe("while there is no worker", () => {
  it("requests wait for a worker to start, and all of them are answered", async (test) => {
    const endpoint = await makeBalanced(test, server, {}, { ECHO_DELAY: "700" });
    const replies = Array.from({ length: 20 }, (_, n) => endpoint.fetch(`/${n}`));
    await until(async () => (await health(endpoint)).jobs.inQueue === 20);
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect((await health(endpoint)).workers.ready).toBe(1);
  });

  it("requests to a worker whose health is 204 wait until it is 200", async (test) => {
    const file = join(makeFolder(test), "healthy");
    const endpoint = await makeBalanced(test, server, {}, { ECHO_HEALTH: file });
    const reply = endpoint.fetch("/");
    await until(async () => (await health(endpoint)).workers.initializing === 1);
    await until(() => health(endpoint).then(({ jobs }) => jobs.inQueue === 1));
    expect(endpoint.notes().filter((note) => note.got)).toEqual([]);
    writeFileSync(file, "");
    expect((await reply).status).toBe(200);
  });

  it("and none is allowed, requests are refused at once with the reason", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMax: 0 });
    const reply = await endpoint.fetch("/");
    expect(reply.status).toBe(503);
    expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await reply.json()).toMatchObject({ code: "NO_WORKER", error: expect.stringMatching(/workersMax is 0/) });
  });

  it("a client that disconnects leaves the waiting line", async (test) => {
    const endpoint = await makeBalanced(test, server, {}, { ECHO_DELAY: "60000" });
    const gone = new AbortController();
    const reply = endpoint.fetch("/", { signal: gone.signal }).catch(() => "gone");
    await until(async () => (await health(endpoint)).jobs.inQueue === 1);
    gone.abort();
    expect(await reply).toBe("gone");
    await until(async () => (await health(endpoint)).jobs.inQueue === 0);
  });

  it("requests to an endpoint made as LB over GraphQL are served", async (test) => {
    const { id } = await makeBalanced(test, server, { workersMax: 0 });
    const { templateId } = (await call(server, "GET", `/v1/endpoints/${id}`)).body;
    const query = `mutation { saveEndpoint(input: { name: "gql", templateId: "${templateId}", type: "LB", workersMax: 1, gpuIds: "AMPERE_16" }) { id } }`;
    const made = (await call(server, "POST", "/graphql", { query })).body.data.saveEndpoint;
    endWith(test, server, made.id);
    expect((await call(server, "GET", `/lb/${made.id}/hello`)).body.url).toBe("/hello");
  });

  it("requests that wait for a deleted endpoint are answered that it was deleted", async (test) => {
    const endpoint = await makeBalanced(test, server, {}, { ECHO_DELAY: "60000" });
    const reply = endpoint.fetch("/");
    await until(async () => (await health(endpoint)).jobs.inQueue === 1);
    await call(server, "DELETE", `/sdk/v1/endpoints/${endpoint.id}`);
    expect((await reply).status).toBe(404);
  });
});

describe("a worker that dies", () => {
  it("before it has replied hands a GET to another worker", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1 });
    await ready(endpoint);
    const reply = await endpoint.fetch(`/die-once?file=${join(endpoint.folder, "died")}`);
    expect([reply.status, (await reply.text()).slice(0, 4)]).toEqual([200, "pid "]);
    expect((await health(endpoint)).jobs.retried).toBeGreaterThan(0);
  });

  it("before it has replied hands over a PUT with a small body, too", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1 });
    await ready(endpoint);
    const path = `/die-once?file=${join(endpoint.folder, "died")}`;
    expect((await endpoint.fetch(path, { method: "PUT", body: "again" })).status).toBe(200);
  });

  it("fails a POST with 502, because the request may have been carried out", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1 });
    await ready(endpoint);
    const reply = await endpoint.fetch("/die", { method: "POST", body: "x" });
    expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([502, "WORKER_FAILED"]);
    expect(endpoint.notes().filter((note) => note.died)).toHaveLength(1);
  });

  it("at every attempt gets a GET no more than three times", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1 });
    await ready(endpoint);
    const reply = await endpoint.fetch("/die");
    expect(reply.status).toBe(502);
    expect(endpoint.notes().filter((note) => note.died)).toHaveLength(3);
  });

  it("in mid-reply ends the reply so that the client sees that it is incomplete", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1 });
    await ready(endpoint);
    const reply = await endpoint.fetch("/die-in-body");
    expect(reply.status).toBe(200);
    await expect(reply.text()).rejects.toThrow();
    // A reply whose end is its connection's close is reset instead.
    const top = `GET /lb/${endpoint.id}/die-in-body HTTP/1.0\r\nHost: localhost\r\nAuthorization: ${server.key}\r\n\r\n`;
    await ready(endpoint);
    await expect(exchange(server.port, top)).rejects.toThrow(/ECONNRESET/);
  });

  it("while idle is replaced, and its endpoint answers again", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1 });
    await ready(endpoint);
    const pid = await pidOf(endpoint);
    process.kill(pid, "SIGKILL");
    expect(await pidOf(endpoint)).not.toBe(pid);
  });
});

describe("workers", () => {
  it("share the requests in flight: the least loaded gets the next", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 2, workersMax: 2 });
    await ready(endpoint, 2);
    const gate = join(endpoint.folder, "gate");
    const held = Array.from({ length: 6 }, () => endpoint.fetch(`/slow?gate=${gate}`));
    await until(async () => (await health(endpoint)).jobs.inProgress === 6);
    await until(() => endpoint.notes().filter((note) => note.path === "/slow").length === 6);
    const pids = endpoint.notes().flatMap((note) => (note.path === "/slow" ? [note.pid] : []));
    expect(pids.filter((pid) => pid === pids[0])).toHaveLength(3);
    writeFileSync(gate, "");
    for (const reply of await Promise.all(held)) expect(reply.status).toBe(200);
  });

  it("start as requests in flight require, and stop when there are none", async (test) => {
    const settings = { workersMax: 3, scalerType: "REQUEST_COUNT", scalerValue: 2, idleTimeout: 1 };
    const endpoint = await makeBalanced(test, server, settings);
    const gate = join(endpoint.folder, "gate");
    const held = Array.from({ length: 5 }, () => endpoint.fetch(`/slow?gate=${gate}`));
    await ready(endpoint, 3);
    writeFileSync(gate, "");
    await Promise.all(held);
    await until(async () => (await health(endpoint)).workers.ready === 0, 30_000);
  });

  it("that are replaced finish their requests, and new requests go to the new worker", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1, workersMax: 2 });
    await ready(endpoint);
    const old = await pidOf(endpoint);
    const gate = join(endpoint.folder, "gate");
    const held = endpoint.fetch(`/slow?gate=${gate}`);
    await until(() => endpoint.notes().some((note) => note.path === "/slow"));
    await patch(endpoint, { env: { ECHO_FILE: join(endpoint.folder, "notes.jsonl"), NEW: "1" } });
    await until(async () => (await pidOf(endpoint)) !== old, 30_000);
    expect(isAlive(old)).toBe(true);
    writeFileSync(gate, "");
    expect(await (await held).text()).toBe("done");
    await until(() => !isAlive(old), 30_000);
  });

  it("that become unhealthy get no requests until they are healthy again", async (test) => {
    const sick = join(makeFolder(test), "sick");
    const endpoint = await makeBalanced(test, server, { workersMin: 1 }, { ECHO_SICK: sick });
    await ready(endpoint);
    writeFileSync(sick, "");
    await until(async () => (await health(endpoint)).workers.unhealthy === 1, 30_000);
    const reply = endpoint.fetch("/");
    await until(async () => (await health(endpoint)).jobs.inQueue === 1);
    rmSync(sick);
    expect((await reply).status).toBe(200);
    await until(async () => (await health(endpoint)).workers.unhealthy === 0);
  });

  it("live on when the server is killed, and are served again by the next one", async (test) => {
    const own = await startServer({ MILLRACE_RATE_LIMITS: "off" });
    test.onTestFinished(() => own.end());
    const endpoint = await makeBalanced(test, own, { workersMin: 1 });
    const pid = await pidOf(endpoint);
    await own.kill();
    await own.restart();
    expect(await pidOf(endpoint)).toBe(pid);
  });

  it("that send nothing for longer than executionTimeoutMs are given up", async (test) => {
    const endpoint = await makeBalanced(test, server, { workersMin: 1, executionTimeoutMs: 5_000 });
    await ready(endpoint);
    const reply = await endpoint.fetch(`/slow?gate=${join(endpoint.folder, "never")}`);
    expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([504, "WORKER_TIMEOUT"]);
  });
});
