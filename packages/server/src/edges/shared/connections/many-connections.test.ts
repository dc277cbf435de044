import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { limits } from "../../../limits/index.js";
import { openDoor } from "./door.js";
import { ownConnection } from "./pipelines.js";

const get = (n: number) => `GET /${n} HTTP/1.1\r\nhost: here\r\n\r\n`;

/** A hundred connections, which end with the test, as the door does. */
function hundredTo(door: Awaited<ReturnType<typeof openDoor>>): Socket[] {
  const sockets = Array.from({ length: 100 }, () => connect(door.port, "127.0.0.1").on("error", () => {}));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await door.close();
  });
  return sockets;
}

describe("Requests on many connections", () => {
  it.each([
    ["a known owner", (socket: Socket) => ownConnection(socket, 1)],
    ["a stranger who was served before", () => {}],
  ])("of %s need not wait for those of many who have just come", async (_, know) => {
    const door = await openDoor("127.0.0.1", 0);
    const served: string[] = [];
    door.take((request, reply) => {
      served.push(request.url as string);
      if (request.url === "/1") know(request.socket);
      for (const until = performance.now() + 1; performance.now() < until; ); // one millisecond of work
      reply.end("<>");
    });
    const open = () => connect(door.port, "127.0.0.1").on("error", () => {});
    const [known, newcomers] = [open(), Array.from({ length: 100 }, open)];
    onTestFinished(async () => {
      for (const socket of [known, ...newcomers]) socket.destroy();
      await door.close();
    });
    await Promise.all([known, ...newcomers].map((socket) => once(socket, "connect")));
    known.write(get(1));
    await once(known, "data");
    for (const socket of newcomers) socket.write(get(2));
    known.write(get(3));
    await expect.poll(() => served.length, { timeout: 10_000 }).toBe(102);
    expect(served.indexOf("/3")).toBeLessThan(30);
  });

  it("of an address need not wait for those of many that come from another one", async () => {
    const door = await openDoor("127.0.0.1", 0);
    const served: string[] = [];
    door.take((request, reply) => {
      served.push(request.url as string);
      for (const until = performance.now() + 1; performance.now() < until; ); // one millisecond of work
      reply.end("<>");
    });
    const open = (localAddress: string) =>
      connect({ port: door.port, host: "127.0.0.1", localAddress }).on("error", () => {});
    const many = Array.from({ length: 100 }, () => open("127.0.0.2"));
    const one = open("127.0.0.3");
    let accepted = 0;
    door.server.on("connection", () => accepted++);
    onTestFinished(async () => {
      for (const socket of [one, ...many]) socket.destroy();
      await door.close();
    });
    await expect.poll(() => accepted, { timeout: 10_000 }).toBe(101);
    for (const socket of many) socket.write(get(1));
    one.write(get(2));
    await expect.poll(() => served.length, { timeout: 10_000 }).toBe(101);
    expect(served.indexOf("/2")).toBeLessThan(30);
  });

  it("that have just come begin before the bodies of others are read", async () => {
    const door = await openDoor("127.0.0.1", 0);
    const events: string[] = [];
    door.take((request, reply) => {
      events.push("begun");
      request.once("data", () => {
        events.push("body");
        for (const until = performance.now() + 2; performance.now() < until; ); // two milliseconds of work
        reply.end("<>");
      });
    });
    const sockets = hundredTo(door);
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    const head = (pad: string) => `POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 4000\r\nx-pad: ${pad}\r\n\r\n`;
    const slice = head("x".repeat(limits.headSliceBytes - head("").length));
    for (const socket of sockets) socket.write(slice + "x".repeat(4000));
    await expect.poll(() => events.length, { timeout: 10_000 }).toBe(200);
    const before = events.slice(0, events.lastIndexOf("begun"));
    expect(before.filter((event) => event === "body").length).toBeLessThan(80);
  });

  it("at one moment are parsed in turns, each connection in its own", async () => {
    const door = await openDoor("127.0.0.1", 0);
    let served = 0;
    let busiest = 0;
    let inTurn = 0;
    const endTurn = () => {
      busiest = Math.max(busiest, inTurn);
      inTurn = 0;
    };
    door.take((_request, reply) => {
      served++;
      if (inTurn++ === 0) setImmediate(endTurn);
      for (const until = performance.now() + 1; performance.now() < until; ); // one millisecond of work
      reply.end("<>");
    });
    const sockets = hundredTo(door);
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const socket of sockets) socket.write(get(1) + get(2));
    await expect.poll(() => served, { timeout: 10_000 }).toBe(200);
    expect(busiest).toBeLessThan(3 * limits.turnMs);
  });

  it("that end at one moment in the middle of a body are refused in turns", async () => {
    const door = await openDoor("127.0.0.1", 0);
    let begun = 0;
    let refused = 0;
    let busiest = 0;
    let inTurn = 0;
    const endTurn = () => {
      busiest = Math.max(busiest, inTurn);
      inTurn = 0;
    };
    door.take((request) => {
      begun++;
      request.on("error", () => {}).resume();
    });
    door.server.on("clientError", (_error, socket) => {
      refused++;
      if (inTurn++ === 0) setImmediate(endTurn);
      for (const until = performance.now() + 1; performance.now() < until; ); // one millisecond of work
      socket.destroy();
    });
    const sockets = hundredTo(door);
    for (const socket of sockets) socket.write("POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\nhalf");
    await expect.poll(() => begun, { timeout: 10_000 }).toBe(100);
    for (const socket of sockets) socket.end();
    await expect.poll(() => refused, { timeout: 10_000 }).toBe(100);
    expect(busiest).toBeLessThan(3 * limits.turnMs);
  });
});
