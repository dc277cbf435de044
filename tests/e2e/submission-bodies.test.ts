import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer } from "../harness.js";
import { makeQueue } from "./handlers.js";
import { headOf, healthOf, openRaw, textCall } from "./wire.js";

const MB = 2 ** 20;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const post = (path: string, body?: unknown, headers?: Record<string, string>) =>
  call(server, "POST", `/v2/${path}`, body, headers);

describe.concurrent("the size of a submission", () => {
  /** A submission of exactly this many bytes. */
  const submission = (bytes: number) => `{"input":{"a":"${"x".repeat(bytes - 18)}"}}`.padEnd(bytes);

  it.for([
    ["run", 10],
    ["runsync?wait=1000", 20],
  ] as const)("of /%s may be %i MB, and not a byte more", async ([path, megabytes], test) => {
    const endpoint = await makeQueue(test, server);
    const whole = submission(megabytes * MB);
    expect(Buffer.byteLength(whole)).toBe(megabytes * MB);
    expect((await post(`${endpoint}/${path}`, whole)).status).toBe(200);
    const more = await textCall(server, "POST", `/v2/${endpoint}/${path}`, `${whole} `).catch(() => undefined);
    if (more) expect(more.status).toBe(413); // a client that is still sending may see a reset instead
    expect((await healthOf(server, endpoint)).jobs.inQueue).toBe(1);
  });

  it("is checked by its Content-Length before any of it has arrived", async (test) => {
    const endpoint = await makeQueue(test, server);
    const socket = await openRaw(server.port);
    await socket.write(headOf(server, "POST", `/v2/${endpoint}/run`, `Content-Length: ${10 * MB + 1}`));
    expect(await socket.status(5_000)).toBe(413);
    const body = JSON.parse(await socket.body(5_000));
    expect(body).toMatchObject({ error: expect.stringMatching(/\S/), code: "PAYLOAD_TOO_LARGE" });
    socket.end();
  });

  it("is counted if no length was given, and refused in mid-body", async (test) => {
    const endpoint = await makeQueue(test, server);
    const socket = await openRaw(server.port);
    await socket.write(headOf(server, "POST", `/v2/${endpoint}/run`, "Transfer-Encoding: chunked"));
    const piece = Buffer.alloc(MB, " ");
    for (let megabytes = 0; megabytes < 10; megabytes++) {
      await socket.write(`${piece.length.toString(16)}\r\n`);
      await socket.write(piece);
      await socket.write("\r\n");
    }
    expect(socket.received()).toBe("");
    await socket.write("1\r\n \r\n"); // one byte over, and the last chunk is never sent
    expect(await socket.status(10_000)).toBe(413);
    socket.end();
  });

  it("takes a chunked body under the limit", async (test) => {
    const endpoint = await makeQueue(test, server);
    const status = await new Promise((done, fail) => {
      const headers = { authorization: server.key, "transfer-encoding": "chunked" };
      const sending = request(`${server.url}/v2/${endpoint}/run`, { method: "POST", headers }, (reply) => {
        reply.resume();
        done(reply.statusCode);
      });
      sending.on("error", fail);
      sending.write('{"input":');
      sending.end("{}}");
    });
    expect(status).toBe(200);
  });
});

describe.concurrent("a request on the wire", () => {
  it("with two Host headers is refused", async () => {
    const socket = await openRaw(server.port);
    const key = `Authorization: ${server.key}`;
    await socket.write(`GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n${key}\r\n\r\n`);
    expect(await socket.status(5_000)).toBe(400);
    socket.end();
  });

  it("with an absolute target is refused", async () => {
    const socket = await openRaw(server.port);
    const target = `http://127.0.0.1:${server.port}/healthz`;
    await socket.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`);
    expect(await socket.status(5_000)).toBe(400);
    socket.end();
  });

  it("with both a length and chunks is refused, and its tail is not read as a second request", async (test) => {
    const endpoint = await makeQueue(test, server);
    const smuggled = `${headOf(server, "POST", `/v2/${endpoint}/run`, "Content-Length: 12")}{"input":{}}`;
    const socket = await openRaw(server.port);
    await socket.write(headOf(server, "POST", "/v2/x/purge-queue", "Content-Length: 5", "Transfer-Encoding: chunked"));
    await socket.write(`0\r\n\r\n${smuggled}`);
    expect(await socket.status(5_000)).toBe(400);
    expect((await healthOf(server, endpoint)).jobs.inQueue).toBe(0);
    socket.end();
  });
});
