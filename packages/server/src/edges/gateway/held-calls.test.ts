import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { endCallsLoop } from "../../loops/end-calls.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { type Gateway, openGateway } from "./gateway.js";

let scene: Scene;
let gateway: Gateway;
let http: Http;
let worker: Server;
beforeAll(async () => {
  scene = await Scene.open();
  gateway = openGateway(scene.parts, { domain: undefined, isProxyTrusted: true });
  http = await openHttp(scene, { gateway });
  worker = createServer().on("upgrade", (_request, socket) => {
    socket.on("error", () => {}).on("end", () => socket.destroy());
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  });
  await new Promise<void>((done) => worker.listen(0, "127.0.0.1", done));
});
afterAll(async () => {
  await gateway.close();
  await http.close();
  worker.closeAllConnections();
  await new Promise((done) => worker.close(done));
  await scene.close();
});

const newKey = async () => (await http.post("/v1/apikeys", { name: "k" })).json as { id: string; key: string };

async function served(): Promise<Endpoint> {
  const endpoint = await scene.endpoint({ type: "LB" });
  const live = await scene.worker(endpoint);
  const { port } = worker.address() as { port: number };
  await scene.parts.registry.changeWorker(live, { ...workerChanges.start, address: `127.0.0.1:${port}` });
  await scene.parts.registry.changeWorker(live, { by: "ready", readyAt: scene.clock.now() });
  scene.parts.gate.open(live);
  return endpoint;
}

/** Opens a WebSocket; resolves once it is open. */
async function open({ id }: Endpoint, key: string) {
  const socket = connect(http.port, "127.0.0.1").on("error", () => {});
  const closed = new Promise<void>((done) => socket.once("close", () => done()));
  socket.write(
    `GET /lb/${id}/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nConnection: Upgrade\r\n` +
      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  const [text] = await new Promise<[Buffer]>((done) => socket.once("data", (data) => done([data])));
  expect(text.toString("latin1")).toMatch(/^HTTP\/1.1 101 /);
  return { socket, closed };
}

const look = () => endCallsLoop(scene.parts).tick(scene.clock.now(), new AbortController().signal as never);

it("A WebSocket is forgotten when its client closes it, and ends when its key is revoked", async () => {
  const endpoint = await served();
  const { id, key } = await newKey();
  const first = await open(endpoint, key);
  expect(scene.parts.heldCalls.size).toBe(1);
  first.socket.destroy();
  await expect.poll(() => scene.parts.heldCalls.size).toBe(0);
  const second = await open(endpoint, key);
  expect((await http.call("DELETE", `/v1/apikeys/${id}`)).status).toBe(204);
  await look();
  await second.closed;
  await expect.poll(() => scene.parts.heldCalls.size).toBe(0);
});

it("A request that waits for a worker is answered 401 when its key is revoked", async () => {
  const endpoint = await scene.endpoint({ type: "LB" });
  const { id, key } = await newKey();
  const asked = http.get(`/lb/${endpoint.id}/`, { key });
  await expect.poll(() => scene.parts.heldCalls.size).toBe(1);
  expect((await http.call("DELETE", `/v1/apikeys/${id}`)).status).toBe(204);
  await look();
  expect((await asked).status).toBe(401);
});

it("A WebSocket ends when its key may only read", async () => {
  const endpoint = await served();
  const { id, key } = await newKey();
  const { closed } = await open(endpoint, key);
  expect((await http.call("PATCH", `/v1/apikeys/${id}`, { body: { name: "still everything" } })).status).toBe(200);
  await look();
  expect(scene.parts.heldCalls.size).toBe(1);
  expect((await http.call("PATCH", `/v1/apikeys/${id}`, { body: { scope: "read" } })).status).toBe(200);
  await look();
  await closed;
  await expect.poll(() => scene.parts.heldCalls.size).toBe(0);
});
