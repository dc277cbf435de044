import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PlainSignal } from "../../../clock.js";
import type { Endpoint } from "../../../domain/endpoints/endpoint.js";
import { limits } from "../../../limits/index.js";
import type { LiveWorker } from "../../../memory/registry.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { secretOf } from "../../../testing/scene-acts-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
/** The address of a job whose output is larger than sockets buffer unread. */
let path: string;
let sockets: Socket[];
const outputBytes = 20 * 2 ** 20 - 100;
const output = `{"text":"${"漢".repeat(outputBytes / 3)}"}`;

beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  const id = await scene.running(endpoint, worker);
  await scene.done(worker, id, Buffer.from(`{"output":${output}}`));
  path = `/v2/${endpoint.id}/status/${id}`;
  sockets = [];
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await http.close();
  await scene.close();
});

/** A client that has requested the result this many times on one connection, and reads nothing yet. */
function deaf(requests = 1): Socket {
  const socket = connect(http.port, "127.0.0.1").on("readable", () => {}); // it receives only one buffer
  socket.on("error", () => {}); // a client that is disconnected may see a reset
  const request = `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${scene.key}\r\n\r\n`;
  socket.write(request.repeat(requests));
  sockets.push(socket);
  return socket;
}
const held = () => scene.parts.shares.heldBytes;
const reads = () => scene.until(() => held() > outputBytes);
const readsNoMore = () => scene.until(() => held() === 0);
/** Other owners use all the rest of an account, and one asks for more. */
async function crowd(shares = scene.parts.shares, bytesMax: number = limits.lentBytesMax) {
  const left = bytesMax - shares.heldBytes;
  for (const ownerNo of [1_001, 1_002]) await shares.ask(ownerNo, left / 2, new PlainSignal());
  return { asked: shares.ask(1_003, 1, new PlainSignal()) };
}

describe("A large result", () => {
  it("arrives whole and unchanged, with its length, and its memory is given back", async () => {
    const { status, headers, text } = await http.get(path);
    expect([status, headers.get("content-length")]).toEqual([200, String(Buffer.byteLength(text))]);
    expect(text.includes(`"output":${output},`)).toBe(true);
    await readsNoMore();
  });

  it("is read once for all its readers", async () => {
    for (let reader = 0; reader < 20; reader++) deaf();
    await reads();
    await scene.until(() => sockets.every(({ readableLength }) => readableLength > 0));
    expect(held()).toBeLessThan(2 * outputBytes);
  });

  it("takes no memory for pipelined replies before it is their turn", async () => {
    deaf(50);
    await reads();
    for (const socket of sockets) socket.destroy();
    await readsNoMore();
  });

  it("gives its memory back when its reader disconnects", async () => {
    const socket = deaf();
    await reads();
    socket.resetAndDestroy();
    await readsNoMore();
  });

  it("is withdrawn from a reader that reads nothing for long", async () => {
    const socket = deaf();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await reads();
    await scene.until(() => socket.readableLength > 0);
    await scene.advance(limits.readerStallMs - limits.readerLookMs);
    expect(held()).toBeGreaterThan(outputBytes);
    await scene.advance(2 * limits.readerLookMs);
    await readsNoMore();
    socket.removeAllListeners("readable").on("data", () => {});
    await closed;
  });

  it("is withdrawn sooner from a reader that reads nothing while others wait for memory", async () => {
    deaf();
    await reads();
    await scene.until(() => sockets.every(({ readableLength }) => readableLength > 0));
    const { asked } = await crowd();
    await scene.advance(limits.readerStallWantedMs + 2 * limits.readerLookMs);
    expect(await asked).toBeDefined();
  });

  it("is refused with 503 and Retry-After when no memory is free in time", async () => {
    await crowd();
    const call = http.get(path);
    await scene.until(() => scene.parts.shares.isWanted && scene.clock.sleeping > 1);
    await scene.advance(limits.lentWaitMs);
    const { status, headers, json } = await call;
    expect([status, headers.get("retry-after"), json.code]).toEqual([503, "1", "UNAVAILABLE"]);
  });
});

describe("A large input", () => {
  const input = { text: "x".repeat(2 * limits.takeReadBytesMax) };
  const takeUrl = () => `/v2/${endpoint.id}/job-take/${worker.row.id}?token=${secretOf(worker)}`;

  it("is handed to its worker whole", async () => {
    const id = await scene.submit(endpoint, { input });
    const { json } = await http.get(takeUrl());
    expect(json).toEqual({ id, input });
    await scene.until(() => scene.parts.inputShares.heldBytes === 0);
  });

  it("goes back to the queue when no memory is free in time", async () => {
    await crowd(scene.parts.inputShares, limits.lentInputBytesMax);
    const id = await scene.submit(endpoint, { input });
    const call = http.get(takeUrl());
    await scene.until(async () => (await scene.state(endpoint, id)) === "IN_PROGRESS");
    await scene.advance(limits.takeLentWaitMs);
    expect((await call).status).toBe(204);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
    await scene.advance(limits.lentWaitMs);
  });
});
