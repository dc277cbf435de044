import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { limits } from "../../../limits/index.js";
import { turns } from "../../../turns.js";
import { spendPieces } from "../bodies/piece-turns.js";
import { openDoor } from "./door.js";
import { isHeldBack, takeTurns } from "./pipelines.js";

/** A server whose requests `listener` answers, and a connection to it. */
const opened = async (listener: RequestListener): Promise<Socket> => (await connected(listener)).socket;

async function connected(listener: RequestListener) {
  const door = await openDoor("127.0.0.1", 0);
  door.take(listener);
  const socket = connect(door.port, "127.0.0.1");
  onTestFinished(async () => {
    socket.destroy();
    await door.close();
  });
  await once(socket, "connect");
  return { door, socket };
}

const get = (n: number) => `GET /${n} HTTP/1.1\r\nhost: here\r\n\r\n`;
const post = (n: number, body: string) =>
  `POST /${n} HTTP/1.1\r\nhost: here\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const pathsOf = (text: string) =>
  [...text.matchAll(/<(\/\d+):(\d+)>/g)].map(([, path, bytes]) => [path, Number(bytes)]);

/** Answers with the path and the length of the body. */
const echo: RequestListener = (request, reply) => {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => (bytes += chunk.length));
  request.on("end", () => reply.end(`<${request.url}:${bytes}>`));
};

async function textUntil(socket: Socket, isDone: (text: string) => boolean): Promise<string> {
  let text = "";
  socket.setEncoding("latin1");
  for await (const piece of socket.iterator({ destroyOnReturn: false })) {
    text += piece;
    if (isDone(text)) break;
  }
  return text;
}

describe("Pipelined requests", () => {
  it("are all answered in order, even more than a thousand in one write", async () => {
    const socket = await opened(echo);
    const count = 1_500;
    socket.write(Array.from({ length: count }, (_, n) => get(n)).join(""));
    const text = await textUntil(socket, (got) => got.includes(`</${count - 1}:`));
    expect(pathsOf(text)).toEqual(Array.from({ length: count }, (_, n) => [`/${n}`, 0]));
  });

  it("with bodies of any size are kept apart", async () => {
    const socket = await opened(echo);
    const sizes = [0, 1, limits.headSliceBytes, 5_000, 300_000, 3, 70_000, 0, 20];
    socket.write(sizes.map((size, n) => post(n, "x".repeat(size)) + get(100 + n)).join(""));
    const text = await textUntil(socket, (got) => got.includes(`</${100 + sizes.length - 1}:`));
    expect(pathsOf(text)).toEqual(
      sizes.flatMap((size, n) => [
        [`/${n}`, size],
        [`/${100 + n}`, 0],
      ]),
    );
  });

  it("may arrive in any pieces", async () => {
    const socket = await opened(echo);
    socket.setNoDelay();
    const bytes = Buffer.from(get(1) + post(2, "four") + get(3));
    for (let at = 0; at < bytes.length; at += 7) {
      socket.write(bytes.subarray(at, at + 7));
      await turn();
    }
    const text = await textUntil(socket, (got) => got.includes("</3:"));
    expect(pathsOf(text)).toEqual([
      ["/1", 0],
      ["/2", 4],
      ["/3", 0],
    ]);
  });

  it("are handed over one by one, each in its own turn of the event loop", async () => {
    let turns = 0;
    let isOpen = true;
    const beat = () => {
      turns++;
      if (isOpen) setImmediate(beat);
    };
    setImmediate(beat);
    const seen: number[] = [];
    const socket = await opened((_request, reply) => {
      seen.push(turns);
      reply.end("<>");
    });
    socket.write(Array.from({ length: 400 }, (_, n) => get(n)).join(""));
    await expect.poll(() => seen.length).toBe(400);
    isOpen = false;
    expect(new Set(seen).size).toBe(400);
  });

  it("wait unparsed after an unanswered one, in bounded memory", async () => {
    const seen: [IncomingMessage, ServerResponse][] = [];
    let sent = 0;
    const socket = await opened((request, reply) => void seen.push([request, reply]));
    const many = get(2).repeat(1_000);
    socket.write(get(1));
    await expect.poll(() => seen.length).toBe(1);
    // Fill the kernel's buffers: the server has stopped reading.
    while (socket.write(many) || socket.writableLength < 8 * 2 ** 20) sent += many.length;
    for (let n = 0; n < 200; n++) await turn();
    const server = seen[0]?.[0].socket as Socket;
    expect([seen.length, sent > 2 ** 20]).toEqual([1, true]);
    expect(server.bytesRead).toBeLessThan(2 ** 18);
    socket.on("data", () => {});
    seen[0]?.[1].end("<>");
    await expect.poll(() => seen.length).toBe(2);
  });

  it("do not time out while they are held back, nor cut off the reply before them", async () => {
    let answer = () => {};
    const server = createServer({ headersTimeout: 50, requestTimeout: 100, connectionsCheckingInterval: 10 });
    const listener = takeTurns(server, (request, reply) => {
      if (request.url === "/1") answer = () => reply.end("<first>");
      else reply.end("<second>");
    });
    server.on("request", listener);
    server.on("clientError", (error, socket) => {
      if (!isHeldBack(error, socket as Socket)) socket.destroy();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    onTestFinished(() => {
      socket.destroy();
      server.close();
    });
    // The second head begins in the slice of the first, and ends in another.
    const long = (n: number) => get(n).replace("host", `x: ${"x".repeat(0.7 * limits.headSliceBytes)}\r\nhost`);
    const timedOut = once(server, "clientError");
    socket.write(long(1) + long(2));
    await timedOut;
    answer();
    expect(await textUntil(socket, (got) => got.includes("<second>"))).toMatch(/<first>.*<second>/s);
  });

  it("that arrived whole are served even if their client has half-closed the connection", async () => {
    const socket = await opened(echo);
    // Other connections have spent the pieces of many turns.
    spendPieces(3 * limits.bodyPiecesPerTurn);
    let isOver = false;
    const spend = () => {
      if (isOver) return;
      spendPieces(limits.bodyPiecesPerTurn);
      setImmediate(spend);
    };
    spend();
    socket.end(post(1, "x".repeat(40_000)));
    for (let n = 0; n < 100; n++) await turn();
    isOver = true;
    expect(pathsOf(await textUntil(socket, (got) => got.includes(">")))).toEqual([["/1", 40_000]]);
  });

  it("that have not arrived whole when their client half-closes are given up", async () => {
    let isGivenUp = false;
    const socket = await opened((request, reply) => {
      request.on("error", () => {
        isGivenUp = true;
      });
      request.on("end", () => reply.end()).resume();
    });
    spendPieces(3 * limits.bodyPiecesPerTurn);
    socket.end(post(1, "x".repeat(40_000)).slice(0, -1));
    await expect.poll(() => isGivenUp).toBe(true);
  });

  it("of which the last asks to upgrade end with a client that left before they were parsed", async () => {
    const { door, socket } = await connected(() => {}); // never answers
    let hasEnded: boolean | undefined;
    door.server.on("upgrade", (_request, left) => {
      hasEnded = left.destroyed;
    });
    turns.wait(["another"], () => {
      for (const until = performance.now() + 20; performance.now() < until; ); // the end comes meanwhile
    });
    socket.end(`${get(1)}GET /2 HTTP/1.1\r\nhost: here\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`);
    socket.resume();
    await once(socket, "close");
    expect(hasEnded).toBe(true);
  });

  it("sent ahead of replies in too many bytes on all connections end the connection that adds to them", async () => {
    const before = limits.pipelinedBytesMax;
    onTestFinished(() => void Object.assign(limits, { pipelinedBytesMax: before }));
    Object.assign(limits, { pipelinedBytesMax: 20_000 });
    const socket = await opened(() => {}); // never answers
    socket.on("error", () => {});
    const closed = new Promise((done) => socket.once("close", done));
    for (let n = 0; n < 2_000; n++) socket.write(get(n));
    await closed;
  });

  it("after a request whose client disconnects are dropped", async () => {
    const seen: string[] = [];
    let end = () => {};
    const socket = await opened((request, reply) => {
      seen.push(String(request.url));
      end = () => reply.end("late");
    });
    socket.write(Array.from({ length: 20 }, (_, n) => get(n)).join(""));
    await expect.poll(() => seen.length).toBe(1);
    socket.destroy();
    end();
    for (let n = 0; n < 50; n++) await turn();
    expect(seen).toEqual(["/0"]);
  });
});

describe("A body in chunks of one byte", () => {
  const tiny = (chunks: number) =>
    `POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(chunks)}0\r\n\r\n`;

  /** The most bytes that arrived in one turn of the event loop, over all bodies. */
  async function mostPerTurn(connections: number, chunks: number, listener: RequestListener): Promise<number> {
    let total = 0;
    let inTurn = 0;
    let most = 0;
    const isOver = () => total === connections * chunks;
    const beat = () => {
      most = Math.max(most, inTurn);
      inTurn = 0;
      if (!isOver()) setImmediate(beat);
    };
    const counting: RequestListener = (request, reply) => {
      request.on("data", (piece: Buffer) => {
        total += piece.length;
        inTurn += piece.length;
      });
      listener(request, reply);
    };
    const sockets = await Promise.all(Array.from({ length: connections }, () => opened(counting)));
    setImmediate(beat);
    for (const socket of sockets) socket.write(tiny(chunks));
    await expect.poll(isOver).toBe(true);
    return Math.max(most, inTurn);
  }
  const chunksPerSlice = Math.ceil(limits.bodySliceBytes / 6);
  // The turns measured here begin elsewhere in the loop than the server's.
  const bound = 2 * (limits.bodyPiecesPerTurn + chunksPerSlice);

  it("is handed over in few pieces", async () => {
    let pieces = 0;
    const socket = await opened((request, reply) => {
      let bytes = 0;
      request.on("data", (piece: Buffer) => {
        pieces++;
        bytes += piece.length;
      });
      request.on("end", () => reply.end(`<${request.url}0:${bytes}>`));
    });
    socket.write(tiny(50_000) + get(1));
    const text = await textUntil(socket, (got) => got.includes("</10:"));
    expect(pathsOf(text)).toEqual([
      ["/0", 50_000],
      ["/10", 0],
    ]);
    expect(pieces).toBeLessThan(200);
  });

  it("shares a turn of the event loop with all other bodies", async () => {
    expect(await mostPerTurn(4, 30_000, echo)).toBeLessThan(bound);
  });

  it("also shares it after its request was answered", async () => {
    expect(await mostPerTurn(1, 60_000, (_request, reply) => void reply.end("<>"))).toBeLessThan(bound);
  });

  it("waits unparsed if it is not read", async () => {
    let request: IncomingMessage | undefined;
    const socket = await opened((asked) => {
      request = asked;
    });
    socket.write(tiny(300_000));
    await expect.poll(() => request?.readableLength ?? 0).toBeGreaterThanOrEqual(limits.bodyBytesPerRead);
    for (let n = 0; n < 100; n++) await turn();
    expect(request?.readableLength).toBeLessThan(2 * limits.bodyBytesPerRead);
  });
});
