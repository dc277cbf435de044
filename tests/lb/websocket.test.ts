import { once as connected } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { call, startServer, type TestServer, until } from "../harness.js";
import { type Balanced, exchange, makeBalanced } from "./balanced.js";

let server: TestServer;
let endpoint: Balanced;
const undoings: (() => Promise<void> | void)[] = [];
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", MILLRACE_LB_DOMAIN: "lb.test" });
  endpoint = await makeBalanced({ onTestFinished: (undo) => void undoings.push(undo) }, server, { workersMin: 1 });
  await endpoint.fetch("/");
});
afterAll(async () => {
  for (const undo of undoings) await undo();
  await server.end();
});

const health = async ({ id }: Balanced) => (await call(server, "GET", `/v2/${id}/health`)).body;
const open = (to: Balanced, path = "/socket") =>
  new WebSocket(`${to.base.replace("http", "ws")}${path}`, { headers: { authorization: `Bearer ${server.key}` } });
const once = (socket: WebSocket, event: "open" | "message" | "close" | "error") =>
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the event's type
  new Promise<any>((resolve) => socket.addEventListener(event, resolve, { once: true }));
const handshake = (path: string, more = "") =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`;

describe("a WebSocket", () => {
  it("is connected to a worker, carries messages both ways, counts as in flight, and closes in order", async () => {
    const socket = open(endpoint);
    await once(socket, "open");
    const opened = await until(() => endpoint.notes().find((note) => note.socket === "open"));
    expect(opened.authorization).toBeNull();
    for (const text of ["one", "two"]) {
      socket.send(text);
      expect((await once(socket, "message")).data).toBe(text);
    }
    expect((await health(endpoint)).jobs.inProgress).toBe(1);
    socket.close();
    await once(socket, "close");
    await until(async () => (await health(endpoint)).jobs.inProgress === 0);
    await until(() => endpoint.notes().some((note) => note.socket === "closed"));
  });

  it("stays open beside a burst of connections without a key", async (test) => {
    const socket = open(endpoint);
    await once(socket, "open");
    const crowd: Socket[] = [];
    test.onTestFinished(() => crowd.forEach((each) => void each.destroy()));
    await sleep(limits.strangerGraceMs); // until it could give way to them
    const come = () => {
      const client = connect(server.port, "127.0.0.1").on("error", () => {});
      crowd.push(client);
      return Promise.race([connected(client, "connect"), connected(client, "close")]);
    };
    await Promise.all(Array.from({ length: limits.strangersMax + 200 }, come));
    await until(() => crowd.some(({ closed }) => closed)); // those that are too many give way
    expect(socket.readyState).toBe(WebSocket.OPEN);
    socket.send("still here");
    expect((await once(socket, "message")).data).toBe("still here");
    socket.close();
  });

  it("waits for a worker to start", async (test) => {
    const cold = await makeBalanced(test, server, {}, { ECHO_DELAY: "500" });
    const socket = open(cold);
    await once(socket, "open");
    socket.close();
  });

  it("that the worker declines is answered with the worker's reply", async () => {
    const text = await exchange(server.port, handshake(`/lb/${endpoint.id}/no-socket`));
    expect(text).toMatch(/^HTTP\/1.1 403 Forbidden\r\n[\s\S]*not me$/);
  });

  it.each([
    ["without a key", 401, (bytes: string) => bytes.replace(/Authorization: .*\r\n/, "")],
    ["to an unknown endpoint", 404, (bytes: string) => bytes.replace(endpoint.id, "unknown0000000")],
    ["with a body", 400, (bytes: string) => bytes.replace("Host", "Content-Length: 5\r\nHost")],
    ["with two hosts", 400, (bytes: string) => bytes.replace("Host", "Host: b\r\nHost")],
  ])("%s is refused with %i", async (_name, status, change) => {
    const text = await exchange(server.port, change(handshake(`/lb/${endpoint.id}/socket`)));
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(text).toContain('"requestId"');
  });

  it("requested from another route is answered as if it had not been requested", async () => {
    const text = await exchange(server.port, handshake("/healthz"), (got) => got.endsWith("}"));
    expect(text).toMatch(/^HTTP\/1.1 200 [\s\S]*"status":"ok"/);
  });

  it("requested after an unanswered request is answered after it", async () => {
    const gate = join(endpoint.folder, "behind");
    const slow = `GET /lb/${endpoint.id}/slow?gate=${gate} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.key}\r\n\r\n`;
    const text = exchange(server.port, slow + handshake(`/lb/${endpoint.id}/socket`), (got) =>
      got.includes("101 Switching"),
    );
    await until(() => endpoint.notes().some((note) => note.path === "/slow"));
    writeFileSync(gate, "");
    expect(await text).toMatch(/^HTTP\/1.1 200 [\s\S]*done[\s\S]*HTTP\/1.1 101 Switching/);
  });

  it("ends with its worker", async (test) => {
    const own = await makeBalanced(test, server, { workersMin: 1 });
    const { pid } = (await (await own.fetch("/")).json()) as { pid: number };
    const socket = open(own);
    await once(socket, "open");
    const closed = once(socket, "close");
    process.kill(pid, "SIGKILL");
    expect((await closed).code).toBe(1006);
  });

  it("ends at the worker when its client is cut off", async (test) => {
    const own = await makeBalanced(test, server, { workersMin: 1 });
    await exchange(server.port, handshake(`/lb/${own.id}/socket`), (got) => got.includes("101"));
    await until(() => own.notes().some((note) => note.socket === "closed"));
  });

  it("does not delay a stopping server", async (test) => {
    const own = await startServer({ MILLRACE_STOP_GRACE: "1", MILLRACE_RATE_LIMITS: "off" });
    test.onTestFinished(() => own.end());
    const there = await makeBalanced(test, own, { workersMin: 1 });
    const socket = new WebSocket(`${there.base.replace("http", "ws")}/socket`, {
      headers: { authorization: `Bearer ${own.key}` },
    });
    await once(socket, "open");
    expect(await own.stop()).toBe(0);
  });
});
