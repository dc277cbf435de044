import { createServer, type Server, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { type Gateway, openGateway } from "./gateway.js";

let scene: Scene;
let gateway: Gateway;
let http: Http;
let endpoint: Endpoint;
let upstream: Server;
let port: number;
const seen: string[] = [];
let headersOfReply = 0;
beforeAll(async () => {
  scene = await Scene.open();
  gateway = openGateway(scene.parts, { domain: undefined, isProxyTrusted: true });
  http = await openHttp(scene, { gateway });
  upstream = createServer((request, reply) => {
    seen.push(`${request.method} ${request.headers["x-forwarded-for"]}`);
    for (let n = 0; n < headersOfReply; n++) reply.appendHeader("a", "");
    reply.end("served");
  });
  await new Promise<void>((done) => upstream.listen(0, "127.0.0.1", done));
  port = (upstream.address() as { port: number }).port;
});
beforeEach(async () => {
  endpoint = await scene.endpoint({ type: "LB" });
  seen.length = 0;
});
afterAll(async () => {
  await gateway.close();
  await http.close();
  await new Promise((done) => upstream.close(done));
  await scene.close();
});

/** A healthy worker of the endpoint, at this test's server. */
async function healthy() {
  const worker = await scene.worker(endpoint);
  await scene.parts.registry.changeWorker(worker, { ...workerChanges.start, address: `127.0.0.1:${port}` });
  await scene.parts.registry.changeWorker(worker, { by: "ready", readyAt: scene.clock.now() });
  scene.parts.gate.open(worker);
  return worker;
}

/** The reply to a WebSocket request with this many empty headers; the connection is then closed. */
async function upgraded(empty: number): Promise<string> {
  const socket = connect(http.port, "127.0.0.1");
  const head = `GET /lb/${endpoint.id}/ HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n`;
  socket.write(`${head}${"a:\r\n".repeat(empty)}\r\n`);
  return text(socket);
}

it("A request of an owner who has too many connections is refused, a WebSocket's included", async () => {
  const full = openGateway(scene.parts, {
    domain: undefined,
    isProxyTrusted: false,
    connections: { know: (_, ownerNo) => ownerNo !== endpoint.ownerNo },
  });
  const crowded = await openHttp(scene, { gateway: full });
  expect((await crowded.get(`/lb/${endpoint.id}/`)).status).toBe(503);
  const socket = connect(crowded.port, "127.0.0.1");
  const upgrade = `host: a\r\nauthorization: ${scene.key}\r\nconnection: upgrade\r\nupgrade: websocket\r\n`;
  socket.write(`GET /lb/${endpoint.id}/ HTTP/1.1\r\n${upgrade}\r\n`);
  expect(await text(socket)).toMatch(/^HTTP\/1.1 503 [\s\S]*Too many connections of yours are open/);
  await full.close();
  await crowded.close();
});

describe("A request for a WebSocket", () => {
  it("with too many headers is refused before they are parsed", async () => {
    expect(await upgraded(limits.headersMax)).toMatch(/^HTTP\/1.1 431 /);
    expect(await upgraded(limits.headersMax - 3)).toMatch(/^HTTP\/1.1 401 /);
  });
});

describe("A worker's reply", () => {
  it("with too many headers is not passed on", async () => {
    await healthy();
    headersOfReply = limits.headersMax;
    const { status, json } = await http.get(`/lb/${endpoint.id}/`);
    expect([status, json.code]).toEqual([502, "WORKER_FAILED"]);
    headersOfReply = limits.headersMax - 10;
    expect((await http.get(`/lb/${endpoint.id}/`)).status).toBe(200);
    headersOfReply = 0;
  });
});

describe("A key", () => {
  it("that may only read may send GET and HEAD, and nothing else", async () => {
    await healthy();
    const key = "mr_read-only";
    await scene.addKey(key, scene.admin.ownerNo, { kind: "readOnly" });
    expect((await http.call("GET", `/lb/${endpoint.id}/`, { key })).text).toBe("served");
    expect((await http.call("HEAD", `/lb/${endpoint.id}/`, { key })).status).toBe(200);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
      expect((await http.call(method, `/lb/${endpoint.id}/`, { key })).status).toBe(401);
    expect(seen.map((line) => line.split(" ")[0])).toEqual(["GET", "HEAD"]);
  });

  it("of named endpoints may send to these, and does not see the others", async () => {
    await healthy();
    const [key, other] = ["mr_one-endpoint", await scene.endpoint({ type: "LB" })];
    await scene.addKey(key, scene.admin.ownerNo, { kind: "endpoints", access: { [endpoint.id]: "run" } });
    expect((await http.post(`/lb/${endpoint.id}/`, "x", { key })).status).toBe(200);
    expect((await http.get(`/lb/${other.id}/`, { key })).status).toBe(404);
  });

  it("of another user gets the same answer as for an unknown endpoint", async () => {
    const { key } = await scene.stranger();
    const there = await http.get(`/lb/${endpoint.id}/`, { key });
    const nowhere = await http.get("/lb/unknown0000000/", { key });
    expect([there.status, there.json.code]).toEqual([404, "ENDPOINT_NOT_FOUND"]);
    expect(there.json.error.replace(endpoint.id, "X")).toBe(nowhere.json.error.replace("unknown0000000", "X"));
  });

  it("of its name is refused with its id, to its owner alone", async () => {
    const named = await scene.endpoint({ type: "LB", name: "by-its-name" });
    const { key } = await scene.stranger();
    const refusal = async (options?: { key: string }) => (await http.get("/lb/by-its-name/", options)).json.error;
    expect(await refusal()).toBe(`'by-its-name' is the name of an endpoint: send its id, ${named.id}, instead.`);
    expect(await refusal({ key })).toMatch(/^There is no endpoint 'by-its-name' for this key/);
  });
});

describe("A request that finds no worker", () => {
  it("gets 503 with the reason after its 2 minutes, and not before", async () => {
    let answer: Awaited<ReturnType<Http["get"]>> | undefined;
    const asked = http.get(`/lb/${endpoint.id}/`).then((reply) => (answer = reply));
    await scene.until(() => scene.parts.gate.loadOf(endpoint.no).waiting === 1);
    await scene.advance(limits.gateWaitMs - 1);
    expect(answer).toBeUndefined();
    await scene.advance(1);
    await asked;
    expect([answer?.status, answer?.json.code, answer?.headers.get("retry-after")]).toEqual([503, "NO_WORKER", "5"]);
    expect(answer?.json.error).toMatch(/No worker was started in time/);
    expect(scene.parts.gate.loadOf(endpoint.no).waiting).toBe(0);
  });

  it("is sent when a worker becomes healthy, with the trusted proxy's facts about its client", async () => {
    const asked = http.get(`/lb/${endpoint.id}/`, { headers: { "x-forwarded-for": "1.2.3.4" } });
    await scene.until(() => scene.parts.gate.loadOf(endpoint.no).waiting === 1);
    const worker = await healthy();
    expect((await asked).text).toBe("served");
    expect(seen).toEqual(["GET 1.2.3.4, 127.0.0.1"]);
    await scene.until(() => worker.row.lastDoneAt !== undefined);
    expect(scene.parts.gate.loadOf(endpoint.no)).toMatchObject({ inFlight: 0, completed: 1 });
  });

  it("gives back a worker that becomes healthy just as the client leaves", async () => {
    const arrived = new Promise<ServerResponse>((resolve) =>
      http.app.server.prependOnceListener("request", (_, reply) => resolve(reply)),
    );
    const leaving = new AbortController();
    const asked = http.get(`/lb/${endpoint.id}/`, { signal: leaving.signal }).catch(() => undefined);
    const reply = await arrived;
    await scene.until(() => scene.parts.gate.loadOf(endpoint.no).waiting === 1);
    await healthy();
    reply.emit("close"); // before the request is given its worker
    expect(scene.parts.gate.loadOf(endpoint.no)).toMatchObject({ waiting: 0, inFlight: 1 });
    await scene.until(() => scene.parts.gate.loadOf(endpoint.no).inFlight === 0);
    leaving.abort();
    await asked;
    expect(seen).toEqual([]);
  });

  it("is refused at once if the line is full", async () => {
    const waiting = Array.from({ length: limits.gateWaitingMax }, () =>
      scene.parts.gate.stand(endpoint.no, { ms: 60_000, isSocket: false, signals: [] }),
    );
    const reply = await http.get(`/lb/${endpoint.id}/`);
    expect([reply.status, reply.json.error]).toEqual([503, expect.stringMatching(/1000 requests are already waiting/)]);
    scene.parts.gate.close(endpoint.no);
    await Promise.all(waiting);
  });

  it("of any method goes to another worker if it cannot connect, and fails if no worker accepts one", async () => {
    const dead = await scene.worker(endpoint);
    await scene.parts.registry.changeWorker(dead, { ...workerChanges.start, address: "127.0.0.1:1" });
    await scene.parts.registry.changeWorker(dead, { by: "ready", readyAt: scene.clock.now() });
    scene.parts.gate.open(dead);
    const asked = http.post(`/lb/${endpoint.id}/`, "a body");
    await scene.until(() => scene.parts.gate.loadOf(endpoint.no).waiting === 1);
    expect(scene.parts.gate.isOpen(dead.row.no)).toBe(false);
    await healthy();
    expect((await asked).text).toBe("served");
  });
});
