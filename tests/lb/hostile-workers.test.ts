import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer, until } from "../harness.js";
import { type Balanced, exchange, makeBalanced } from "./balanced.js";

let server: TestServer;
let endpoint: Balanced;
const undoings: (() => Promise<void> | void)[] = [];
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  endpoint = await makeBalanced({ onTestFinished: (undo) => void undoings.push(undo) }, server, { workersMin: 1 });
  await endpoint.fetch("/");
});
afterAll(async () => {
  for (const undo of undoings) await undo();
  await server.end();
});

const raw = (bytes: string) => `/raw?bytes=${Buffer.from(bytes, "latin1").toString("base64url")}`;
const asking = (path: string, { key = server.key, version = "1.1", method = "GET", more = "" } = {}) =>
  `${method} /lb/${endpoint.id}${path} HTTP/${version}\r\nHost: localhost\r\nAuthorization: ${key}\r\n${more}\r\n`;
const upgrade =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const closing = { more: "Connection: close\r\n" };
const agreed = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
const isWell = async () => (await endpoint.fetch("/")).status === 200;
const gots = (path: string) => endpoint.notes().filter((note) => note.path === path).length;

describe("a worker that answers a WebSocket request", () => {
  it.each([
    ["with trailers that its reply cannot have", "HTTP/1.1 403 No\r\nTrailer: X\r\nContent-Length: 0\r\n\r\n"],
    ["with acceptance and trailers", `HTTP/1.1 101 Yes\r\nTrailer: X\r\n${agreed}\r\n`],
    ["with an invalid status", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"],
    ["with a control character in its reason", "HTTP/1.1 403 N\x01o\r\nContent-Length: 0\r\n\r\n"],
    ["with acceptance and a control character in its reason", `HTTP/1.1 101 Y\x01es\r\n${agreed}\r\n`],
    ["twice", `HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nnoHTTP/1.1 101 Yes\r\n${agreed}\r\n`],
    ["with acceptance of another protocol", "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"],
  ])("%s disturbs no other client", async (_name, bytes) => {
    await exchange(server.port, asking(raw(bytes), { more: upgrade }), (text) => text.length > 0);
    expect(await isWell()).toBe(true);
  });
});

describe("a worker's reply", () => {
  it("whose status text is invalid becomes our own error for a malformed reply", async () => {
    const text = await exchange(
      server.port,
      asking(raw("HTTP/1.1 200 N\x01o\r\nContent-Length: 2\r\n\r\nok"), closing),
    );
    expect(text).toMatch(/^HTTP\/1.1 502 Bad Gateway\r\n[\s\S]*not well-formed/);
  });

  it.each([
    ["PUT", "1.0", "/trailers"],
    ["GET", "1.0", "/trailers"],
    ["HEAD", "1.1", raw("HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n")],
  ])(
    "that announces trailers reaches a %s over HTTP/%s without them, and the request is sent once",
    async (method, version, path) => {
      const before = gots(path.split("?")[0] ?? "");
      const text = await exchange(server.port, asking(path, { method, version, ...closing }));
      expect(text).toMatch(/^HTTP\/1.1 200 OK\r\n/);
      expect(text).not.toMatch(/trailer/i);
      expect(gots(path.split("?")[0] ?? "")).toBe(before + 1);
    },
  );

  it("that is malformed does not count as the worker's loss: nothing is sent twice", async () => {
    const before = gots("/raw");
    const odd = raw("HTTP/1.1 200 N\x01o\r\nContent-Length: 2\r\n\r\nok");
    const text = await exchange(
      server.port,
      asking(odd, { method: "PUT", more: "Content-Length: 0\r\nConnection: close\r\n" }),
    );
    expect(text).toMatch(/^HTTP\/1.1 502 /);
    expect(gots("/raw")).toBe(before + 1);
  });

  it("with nothing but early hints is given up", async () => {
    const text = await exchange(server.port, asking("/endless-hints", closing));
    expect(text).toMatch(/HTTP\/1.1 502 Bad Gateway/);
    expect(text.match(/ 103 /g)?.length ?? 0).toBeLessThan(20);
    await until(() => endpoint.notes().some((note) => note.closed === "hints"));
  });
});

describe("a client that is refused a WebSocket", () => {
  const files = () => readdirSync(`/proc/${server.pid}/fd`).length;
  const refused = (isKept: boolean) =>
    new Promise<() => void>((resolve, reject) => {
      const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true }, () =>
        socket.write(asking("/", { key: "none", more: upgrade })),
      );
      socket.once("error", reject).once("data", () => {
        socket.on("error", () => {});
        socket.write("x"); // the server no longer reads it
        if (!isKept) socket.destroy();
        resolve(() => void socket.destroy());
      });
    });

  it.each([
    ["and goes", false],
    ["and stays", true],
  ])("%s leaves no connection behind", async (_name, isKept) => {
    const before = files();
    const held = await Promise.all(Array.from({ length: 100 }, () => refused(isKept)));
    await until(() => files() < before + 10, 10_000);
    for (const leave of held) leave();
  });
});
