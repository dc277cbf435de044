import { readFile } from "node:fs/promises";
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

const top = (line = "POST", more = "", version = "1.1") =>
  `${line} /lb/${endpoint.id}/front HTTP/${version}\r\nHost: localhost\r\nAuthorization: ${server.key}\r\n${more}`;
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
const seen = () => endpoint.notes().filter((note) => note.path === "/smuggled");

describe("a request that two parsers would read differently", () => {
  it.each([
    ["a length and chunks", `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    [
      "chunks and a length",
      `Transfer-Encoding: chunked\r\nContent-Length: ${smuggled.length + 5}\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    ["two lengths", `Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`],
    ["a list of lengths", `Content-Length: 0, ${smuggled.length}\r\n\r\n${smuggled}`],
    ["a signed length", `Content-Length: +4\r\n\r\nabcd${smuggled}`],
    ["a folded header", `Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ["another coding", `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ["two codings", `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`],
    ["a header name with a space", `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ["a chunk with an invalid size", `Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n${smuggled}`],
    ["a chunk longer than its size", `Transfer-Encoding: chunked\r\n\r\n2\r\nabcdef\r\n0\r\n\r\n${smuggled}`],
    ["lines that end in a bare LF", `Transfer-Encoding: chunked\n\n0\n\n${smuggled}`],
    ["two hosts", `Host: b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`],
    ["a header with a NUL", `X-A: b\0c\r\nContent-Length: 0\r\n\r\n`],
    ["a lone CR in a header", `X-A: b\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ])("is refused: %s", async (_name, rest) => {
    const text = await exchange(server.port, top() + rest, (got) => /^HTTP\/1.1 200/.test(got));
    // If the body began before the error was found, the connection is only closed.
    expect(text).not.toMatch(/HTTP\/1.1 2/);
    expect(seen()).toEqual([]);
  });

  it.each([
    [
      "an absolute target",
      () => `GET http://a/lb/${endpoint.id}/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.key}\r\n\r\n`,
    ],
    ["CONNECT", () => "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ["no host", () => `GET /lb/${endpoint.id}/ HTTP/1.1\r\nAuthorization: ${server.key}\r\nConnection: close\r\n\r\n`],
  ])("is refused: %s", async (_name, bytes) => {
    expect(await exchange(server.port, bytes(), (got) => got.includes("\r\n\r\n"))).not.toMatch(/HTTP\/1.1 2/);
  });

  it("keeps its length though Connection names it", async () => {
    const body = `${smuggled}`;
    const bytes = `${top()}Connection: content-length, close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const text = await exchange(server.port, bytes);
    expect(text).toMatch(/^HTTP\/1.1 200/);
    expect(JSON.parse(text.slice(text.indexOf("{"))).body).toBe(body);
    expect(seen()).toEqual([]);
  });

  it("is served as two requests if it is two", async () => {
    const one = top("GET").replace("/front", "/one");
    const two = top("GET").replace("/front", "/two");
    const text = await exchange(server.port, `${one}\r\n${two}Connection: close\r\n\r\n`);
    expect(text.match(/"url":"[^"]+"/g)).toEqual(['"url":"/one"', '"url":"/two"']);
  });
});

describe("a request that", () => {
  it("has giant headers is refused with 431", async () => {
    const text = await exchange(server.port, `${top("GET")}X-Large: ${"x".repeat(20_000)}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1.1 431 /);
  });

  it("never ends its headers does not keep others from being served", async () => {
    const socket = connect(server.port, "127.0.0.1", () => void socket.write(top("GET")));
    socket.on("error", () => {});
    expect((await endpoint.fetch("/")).status).toBe(200);
    socket.destroy();
  });

  it("stops in the middle of its body reaches the worker as incomplete, not as whole", async () => {
    const socket = connect(server.port, "127.0.0.1", () => {
      socket.write(`${top().replace("/front", "/sink")}Content-Length: 1000\r\n\r\nonly this`);
    });
    socket.on("error", () => {});
    await until(() => endpoint.notes().some((note) => note.path === "/sink"));
    socket.destroy();
    await until(() => endpoint.notes().some((note) => note.aborted !== undefined));
    expect((await endpoint.fetch("/")).status).toBe(200);
  });

  it("reads nothing of a large reply does not hold memory, and others are served while it waits", async () => {
    const text = `${top("GET")}\r\n`.replace("/front", "/large?bytes=500000000");
    const sockets = Array.from({ length: 5 }, () => {
      const socket = connect(server.port, "127.0.0.1", () => void socket.write(text));
      socket.pause();
      return socket.on("error", () => {});
    });
    const closed = () => endpoint.notes().filter((note) => note.closed === "large");
    await until(() => endpoint.notes().filter((note) => note.path === "/large").length >= 5);
    for (let n = 0; n < 20; n++) expect((await endpoint.fetch("/")).status).toBe(200);
    expect(closed()).toEqual([]); // all five replies were still on their way
    const rssKb = Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${server.pid}/status`, "utf8"))?.[1]);
    expect(rssKb).toBeLessThan(300_000);
    for (const socket of sockets) socket.destroy();
    await until(() => closed().length >= 5);
    for (const { left } of closed()) expect(left).toBeGreaterThan(400_000_000); // the server did not read them to the end
  });

  it("offers HTTP/2 or another protocol is served without an upgrade, here and on every other route", async () => {
    const offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n";
    const isWhole = (text: string) => text.endsWith("}");
    const text = await exchange(server.port, `${top("POST", offer)}Content-Length: 5\r\n\r\nhello`, isWhole);
    expect(text).toMatch(/^HTTP\/1.1 200/);
    const { body, rawHeaders } = JSON.parse(text.slice(text.indexOf("{")));
    expect(body).toBe("hello");
    expect(JSON.stringify(rawHeaders)).not.toMatch(/h2c|HTTP2-Settings/i);
    const health = `GET /v2/${endpoint.id}/health HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.key}\r\n${offer}\r\n`;
    expect(await exchange(server.port, health + health, (got) => got.match(/"jobs"/g)?.length === 2)).toMatch(
      /^HTTP\/1.1 200/,
    );
    // Some clients repeat the offer on one connection: nothing may accumulate.
    const many = await exchange(server.port, health.repeat(30), (got) => got.match(/"jobs"/g)?.length === 30);
    expect(many.match(/HTTP\/1.1 200/g)).toHaveLength(30);
    expect(server.log()).not.toContain("MaxListenersExceededWarning");
    // A body that comes later, in chunks.
    const run = `POST /v2/${endpoint.id}/run HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.key}\r\n${offer}Transfer-Encoding: chunked\r\n\r\n`;
    expect(await exchange(server.port, `${run}c\r\n{"input":{}}\r\n0\r\n\r\n`, isWhole)).toMatch(/load-balancing/);
  });
});
