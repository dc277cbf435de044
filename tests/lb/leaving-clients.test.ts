import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { type Balanced, exchange, makeBalanced } from "./balanced.js";

let server: TestServer;
let endpoint: Balanced;
/** An endpoint that may have no workers. */
let closed: Balanced;
const undoings: (() => Promise<void> | void)[] = [];
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  const test = { onTestFinished: (undo: () => Promise<void> | void) => void undoings.push(undo) };
  endpoint = await makeBalanced(test, server, { workersMin: 1 });
  closed = await makeBalanced(test, server, { workersMax: 0 });
  await endpoint.fetch("/");
});
afterAll(async () => {
  for (const undo of undoings) await undo();
  await server.end();
});

const head = (line: string, more = "", { id } = endpoint) =>
  `${line.replace(" ", ` /lb/${id}`)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${server.key}\r\n${more}`;
const asksForSocket =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n";
async function open(bytes: string): Promise<Socket> {
  const socket = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(bytes, "latin1");
  return socket;
}
const health = async () => (await call(server, "GET", `/v2/${endpoint.id}/health`)).body;
const inFlight = async () => (await health()).jobs.inProgress;
const isStillThere = async () => expect((await endpoint.fetch("/")).status).toBe(200);
const ways = ["end", "destroy", "resetAndDestroy"] as const;

describe("a client that disconnects", () => {
  it.each([
    [
      "/healthz",
      () => "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
      () => "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n",
    ],
    ["a worker's reply", () => head("GET /events?gate=/nowhere", "\r\n"), () => head("GET /mute-socket")],
  ])("with a WebSocket requested after %s affects no other client", async (_name, first, second) => {
    for (const way of ways) {
      for (let n = 0; n < 30; n++) {
        const socket = await open(`${first()}${second()}${asksForSocket}`);
        if (n % 3 > 0) await sleep(n);
        socket[way]();
      }
    }
    await isStillThere();
    await until(async () => (await inFlight()) === 0, 20_000);
  });

  it("in the first moments of an upload affects no other client", async () => {
    for (const framing of [
      "Content-Length: 900\r\n\r\nabc",
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
      "Content-Length: 9\r\n\r\n",
    ]) {
      for (const way of ways) {
        for (let n = 0; n < 15; n++) {
          const socket = await open(head("POST /sink", framing));
          if (n % 3 > 0) await sleep(n);
          socket[way]();
        }
      }
    }
    await isStillThere();
    await until(async () => (await inFlight()) === 0, 20_000);
  });

  it.each(ways)("before its WebSocket is answered leaves nothing in flight (%s)", async (way) => {
    const before = endpoint.notes().filter(({ mute }) => mute === "closed").length;
    const socket = await open(head("GET /mute-socket", asksForSocket));
    await until(async () => (await inFlight()) === 1);
    socket[way]();
    await until(async () => (await inFlight()) === 0);
    await until(async () => endpoint.notes().filter(({ mute }) => mute === "closed").length === before + 1);
  });

  it("while its WebSocket waits for a worker leaves the waiting line", async (test) => {
    const late = await makeBalanced(test, server, {}, { ECHO_DELAY: "3000" });
    const sockets = await Promise.all(Array.from({ length: 5 }, () => open(head("GET /socket", asksForSocket, late))));
    const waiting = async () => (await call(server, "GET", `/v2/${late.id}/health`)).body.jobs.inQueue;
    await until(async () => (await waiting()) === 5);
    for (const socket of sockets) socket.end();
    await until(async () => (await waiting()) === 0);
  });

  it("that sends much data before its WebSocket is accepted is disconnected", async () => {
    const socket = await open(head("GET /mute-socket", asksForSocket));
    socket.write(Buffer.alloc(100_000));
    await new Promise((done) => socket.once("close", done)); // which a reset is, too
    await until(async () => (await inFlight()) === 0);
  });

  it("before a reply counts as failed", async () => {
    const before = (await health()).jobs;
    const socket = await open(head("DELETE /stuck-sink?gate=/nowhere", "\r\n"));
    await until(async () => (await inFlight()) === 1);
    socket.destroy();
    await until(async () => (await inFlight()) === 0);
    const after = (await health()).jobs;
    expect([after.completed - before.completed, after.failed - before.failed]).toEqual([0, 1]);
    const page = await (await fetch(`${server.url}/metrics`)).text();
    expect(page).toContain('millrace_request_seconds_count{route="/lb/:endpointId/*",method="DELETE",status="499"} 1');
  });
});

describe("an offer to upgrade after a request whose reply is not written yet", () => {
  const h2c =
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n";

  it.each([
    ["a WebSocket", () => head("GET /socket", asksForSocket), "101 Switching Protocols"],
    ["another protocol", () => h2c, '{"status":"ok"'],
  ])("does not delay it, and is answered after it: %s", async (_name, offer, answer) => {
    const socket = await open(head("GET /large?bytes=200000", "\r\n") + offer());
    let text = "";
    socket.setEncoding("latin1").on("data", (part) => (text += part));
    await until(() => text.includes(answer), 15_000);
    expect(text.indexOf(answer)).toBeGreaterThan(200_000);
    socket.destroy();
  });

  it.each(["end", "destroy"] as const)("does not hide that its client has disconnected (%s)", async (way) => {
    const socket = await open(head("GET /slow?gate=/nowhere", "\r\n") + h2c);
    await until(async () => (await inFlight()) === 1);
    socket[way]();
    await until(async () => (await inFlight()) === 0);
  });
});

describe("interim responses", () => {
  const isRefused = (text: string) => text.includes("requestId");

  it("invite no body while there is no worker", async () => {
    for (const method of ["PUT", "POST"]) {
      const asked = head(`${method} /sink`, "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n", closed);
      const text = await exchange(server.port, asked, isRefused);
      expect(text).toMatch(/^HTTP\/1.1 503/);
    }
  });

  it("are not sent to clients of HTTP/1.0", async () => {
    const old = (text: string) => text.replace("HTTP/1.1", "HTTP/1.0");
    expect(await exchange(server.port, old(head("GET /hints", "\r\n")))).toMatch(/^HTTP\/1.1 200[\s\S]*hinted$/);
    const posted = old(head("POST /echo", "Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc"));
    expect(await exchange(server.port, posted)).toMatch(/^HTTP\/1.1 200/);
    const run = "POST /v2/none/run HTTP/1.0\r\nExpect: 100-continue\r\n\r\n";
    expect(await exchange(server.port, run)).toMatch(/^HTTP\/1.1 4/);
  });

  it("that a worker sends unasked count as malformed, and nothing is sent twice", async () => {
    const bytes = Buffer.from("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").toString(
      "base64url",
    );
    const before = endpoint.notes().filter(({ path }) => path === "/raw").length;
    const reply = await endpoint.fetch(`/raw?bytes=${bytes}`);
    expect([reply.status, await reply.text()]).toEqual([502, expect.stringContaining("not well-formed HTTP")]);
    expect(endpoint.notes().filter(({ path }) => path === "/raw")).toHaveLength(before + 1);
  });
});
