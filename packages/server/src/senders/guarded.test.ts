import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../limits/index.js";
import type { Sender } from "../sender.js";
import { useUpTurn } from "../testing/turns-fixture.js";
import { turns } from "../turns.js";
import { guardedSender } from "./guarded.js";

const never = new AbortController().signal;
const allowed = "; MILLRACE_WEBHOOK_PRIVATE=on allows it";
const headers = { "content-type": "application/json" };

/** A receiver on loopback that records requests and answers as the test sets. */
class Receiver {
  connections = 0;
  readonly requests: { request: IncomingMessage; body: string }[] = [];
  readonly #server: Server;
  readonly #answer: RequestListener;

  constructor(answer: RequestListener) {
    this.#answer = answer;
    this.#server = createServer((request, response) => void this.#receive(request, response));
    this.#server.on("connection", () => this.connections++);
  }

  async #receive(request: IncomingMessage, response: Parameters<RequestListener>[1]): Promise<void> {
    let body = "";
    for await (const text of request.setEncoding("utf8")) body += text;
    this.requests.push({ request, body });
    this.#answer(request, response);
  }

  async listen(): Promise<number> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

describe("A guarded sender", () => {
  let receiver: Receiver;
  let port: number;
  let sender: Sender;
  const open = async (answer: RequestListener, allowPrivate: boolean) => {
    receiver = new Receiver(answer);
    port = await receiver.listen();
    sender = guardedSender({ allowPrivate });
  };
  const post = (path = "/", signal = never) =>
    sender.post(`http://127.0.0.1:${port}${path}`, [Buffer.from('{"a":"é"}')], headers, signal);
  beforeEach(() => open((_, response) => response.end("ok"), false));
  afterEach(async () => {
    await sender.close();
    await receiver.close();
  });
  const reopen = async (answer: RequestListener) => {
    await sender.close();
    await receiver.close();
    await open(answer, true);
  };

  it.each([
    "127.0.0.1",
    "localhost",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "0.0.0.0",
    "[::]",
    "[::1]",
  ])("dials no private address, however it is written: %s", async (host) => {
    const sent = await sender.post(`http://${host}:${port}/`, [Buffer.from("{}")], headers, never);
    expect(sent.status).toBeUndefined();
    expect(sent.error).toMatch(/^the target was refused: .* is not a public .*MILLRACE_WEBHOOK_PRIVATE=on/);
    expect(receiver.connections).toBe(0);
  });

  it.each(["169.254.169.254", "10.0.0.1", "192.168.0.1", "[fe80::1]", "[fd00:ec2::254]", "[64:ff9b::a00:1]"])(
    "refuses %s without a call",
    async (host) => {
      const sent = await sender.post(`http://${host}/latest/meta-data`, [Buffer.from("{}")], headers, never);
      expect(sent.error).toMatch(/^the target was refused/);
    },
  );

  it("does not reveal the address that a name resolved to", async () => {
    const sent = await sender.post(`http://localhost:${port}/`, [Buffer.from("{}")], headers, never);
    expect(sent.error).toBe(`the target was refused: its address is not a public one${allowed}`);
  });

  it.each([1, 22, 25, 53, 111, 445, 587, 993, 1023])("refuses port %i, which is not for web servers", async (odd) => {
    const sent = await sender.post(`http://hooks.invalid:${odd}/`, [Buffer.from("{}")], headers, never);
    expect(sent).toEqual({
      status: undefined,
      error: `the target was refused: port ${odd} is neither 80, 443 nor above 1023${allowed}`,
    });
  });

  it.each([
    "http://hooks.invalid",
    "http://hooks.invalid:443",
    "https://hooks.invalid:80",
    "http://hooks.invalid:1024",
  ])("dials %s", async (url) =>
    expect((await sender.post(`${url}/`, [Buffer.from("{}")], headers, never)).error).toMatch(/^the call failed/),
  );

  it("dials every port if private addresses are allowed", async () => {
    await reopen((_, response) => response.end("ok"));
    expect((await sender.post("http://hooks.invalid:22/", [Buffer.from("{}")], headers, never)).error).toMatch(
      /^the call failed/,
    );
  });

  it("sends to private addresses if allowed, with body and headers unchanged", async () => {
    await reopen((_, response) => response.writeHead(204).end());
    expect(await post("/hook?x=1")).toEqual({ status: 204, error: undefined });
    const [{ request, body }] = receiver.requests as [{ request: IncomingMessage; body: string }];
    expect([request.method, request.url, request.headers["content-type"], body]).toEqual([
      "POST",
      "/hook?x=1",
      "application/json",
      '{"a":"é"}',
    ]);
  });

  it("sends the pieces of a large body one after another, and declares its length", async () => {
    await reopen((_, response) => response.end("ok"));
    const pieces = ["a", "é", "漢"].map((text) => Buffer.from(text.repeat(500_000)));
    const sent = await sender.post(`http://127.0.0.1:${port}/`, pieces, headers, never);
    expect(sent).toEqual({ status: 200, error: undefined, reply: "ok" });
    const [{ request, body }] = receiver.requests as [{ request: IncomingMessage; body: string }];
    expect(request.headers["content-length"]).toBe(String(3_000_000));
    expect(request.headers).not.toHaveProperty("transfer-encoding");
    expect(body === Buffer.concat(pieces).toString()).toBe(true);
  });

  it("sends no more of a large body than its receiver reads", async () => {
    const refusing = createSocketServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        socket.pause();
        socket.end("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 0\r\n\r\n");
      });
    });
    await once(refusing.listen(0, "127.0.0.1"), "listening");
    sender = guardedSender({ allowPrivate: true });
    let pulled = 0;
    const piece = Buffer.alloc(limits.webhookPieceBytes);
    const pieces = Array.from({ length: 100 }, () => piece);
    pieces[Symbol.iterator] = function* () {
      for (; pulled < 100; pulled++) yield piece;
      return undefined;
    };
    const url = `http://127.0.0.1:${(refusing.address() as AddressInfo).port}/`;
    expect(await sender.post(url, pieces, headers, never)).toEqual({ status: 413, error: undefined });
    expect(pulled).toBeLessThan(50); // data in the sockets' buffers counts, too
    refusing.close();
  });

  it("checks names only when they have been resolved, and sends to those that are allowed", async () => {
    await reopen((_, response) => response.end("ok"));
    expect(await sender.post(`http://localhost:${port}/`, [Buffer.from("{}")], headers, never)).toMatchObject({
      status: 200,
    });
  });

  it.each([301, 302, 307, 308])("follows no redirect: %i", async (status) => {
    await reopen((request, response) =>
      request.url === "/" ? response.writeHead(status, { location: "/elsewhere" }).end() : response.end("followed"),
    );
    expect(await post()).toEqual({ status, error: undefined });
    expect(receiver.requests.map(({ request }) => request.url)).toEqual(["/"]);
  });

  it.each([
    ["text, without control characters", "no\u0000 room\n", {}, "no\\x00 room\n"],
    ["text, not cut within a character", `${"a".repeat(1_023)}é`, {}, "a".repeat(1_023)],
    ["compressed bytes", "\u001f\u008b", { "content-encoding": "gzip" }, undefined],
    ["nothing", "", {}, undefined],
  ])("keeps the beginning of a reply: %s", async (_, body, headers, kept) => {
    await reopen((_, response) => response.writeHead(500, headers).end(body));
    expect(await post()).toEqual({ status: 500, error: undefined, reply: kept });
  });

  it("reads a bounded part of an endless reply, and disconnects", async () => {
    let written = 0;
    let hungUp = () => {};
    const closed = new Promise<void>((resolve) => (hungUp = resolve));
    await reopen((_, response) => {
      const block = Buffer.alloc(16_384);
      const more = () => {
        while (!response.destroyed && response.write(block)) written += block.length;
      };
      response.on("drain", more).on("close", () => hungUp());
      more();
    });
    expect((await post()).status).toBe(200);
    await closed;
    // Data in the sockets' buffers counts as written, too.
    expect(written).toBeLessThan(limits.webhookReplyBytesMax + 20 * 1_024 * 1_024);
  });

  it("ends a call whose receiver sends one informational reply after another", async () => {
    await reopen(({ socket }) => {
      const hint = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10)), 10);
      socket.once("close", () => clearInterval(hint));
    });
    const { status, error } = await post();
    expect([status, error]).toEqual([undefined, "the receiver sent more than 16 informational replies"]);
  });

  it("reads what receivers answer in turns with other work", async () => {
    const wait = vi.spyOn(turns, "wait");
    await reopen((_, response) => {
      useUpTurn();
      response.end("ok");
      useUpTurn();
      turns.wait(["others"], useUpTurn);
    });
    expect((await post()).status).toBe(200);
    expect(wait.mock.calls.map(([lane]) => lane)).toContainEqual(["receivers", "127.0.0.1"]);
    wait.mockRestore();
  });

  it("uses a connection again after a reply that it did not need", async () => {
    await reopen((_, response) => response.end("x".repeat(1_000)));
    for (let n = 0; n < 5; n++) await post();
    expect(receiver.requests).toHaveLength(5);
    expect(receiver.connections).toBeLessThanOrEqual(2);
  });

  it("closes a connection that is no longer used, whatever its receiver offers", async () => {
    let closed = 0;
    await reopen((request, response) => {
      request.socket.once("close", () => closed++);
      response.writeHead(200, { "keep-alive": "timeout=600" }).end();
    });
    await post();
    await vi.waitFor(() => expect(closed).toBe(1), { timeout: 10_000 });
  });

  it("ends a call when its signal aborts", async () => {
    let heard = () => {};
    const asked = new Promise<void>((resolve) => (heard = resolve));
    await reopen(() => heard());
    const stop = new AbortController();
    const sent = post("/", stop.signal);
    await asked;
    stop.abort();
    expect(await sent).toEqual({ status: undefined, error: expect.any(String) });
  });

  it("makes no call if the signal has already aborted", async () => {
    await reopen((_, response) => response.end("ok"));
    expect(await post("/", AbortSignal.abort())).toEqual({ status: undefined, error: expect.any(String) });
    expect(receiver.requests).toEqual([]);
  });

  it("gives up on a receiver that only trickles, ten seconds after the call began", async () => {
    let heard = () => {};
    const asked = new Promise<void>((resolve) => (heard = resolve));
    await reopen((_, response) => {
      response.write("drip");
      heard();
    });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const sent = post();
    await asked;
    vi.advanceTimersByTime(limits.webhookTimeoutMs);
    vi.useRealTimers();
    expect(await sent).toEqual({ status: undefined, error: expect.stringContaining("within 10 s") });
  });

  it("names the failure: connection refused, unknown name, no address", async () => {
    await reopen((_, response) => response.end());
    const closed = new Receiver((_, response) => response.end());
    const free = await closed.listen();
    await closed.close();
    expect((await sender.post(`http://127.0.0.1:${free}/`, [Buffer.from("{}")], headers, never)).error).toBe(
      "the call failed: ECONNREFUSED",
    );
    expect((await sender.post("http://no-such-name.invalid/", [Buffer.from("{}")], headers, never)).error).toMatch(
      /^the call failed/,
    );
    expect((await sender.post("not an address", [Buffer.from("{}")], headers, never)).error).toMatch(
      /^the call failed/,
    );
  });
});
