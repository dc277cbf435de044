import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { type Connections, keepRoom } from "./keep-room.js";

const most = 10;
let server: Server;
let port: number;
let connections: Connections;
const own = {
  strangersMax: limits.strangersMax,
  strangerGraceMs: limits.strangerGraceMs,
  strangersAtOnceMax: limits.strangersAtOnceMax,
  connectionsPerOwnerMax: limits.connectionsPerOwnerMax,
};
const held: ServerResponse[] = [];
const clients: Socket[] = [];
beforeEach(async () => {
  server = createServer();
  connections = keepRoom(server, most);
  server.on("request", (request, reply) => (request.url === "/held" ? held.push(reply) : reply.end("ok")));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  ({ port } = server.address() as AddressInfo);
});
afterEach(() => {
  Object.assign(limits, own);
  held.length = 0;
  for (const client of clients) client.destroy();
  server.closeAllConnections();
  server.close();
});

/** A connection that has made its request, and whether it was answered. */
async function asking(path: string): Promise<{ socket: Socket; said: () => string; isOpen: () => boolean }> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  clients.push(socket);
  let said = "";
  socket.on("data", (data) => {
    said += data.toString();
  });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  const before = held.length;
  await expect.poll(() => said !== "" || held.length > before || socket.destroyed).toBe(true);
  return { socket, said: () => said, isOpen: () => !socket.destroyed };
}

it("A new connection closes the one that has been idle longest, and none with a request under way", async () => {
  const waiting = [await asking("/held"), await asking("/held")];
  const idle: Awaited<ReturnType<typeof asking>>[] = [];
  for (let n = 0; n < 7; n++) idle.push(await asking("/"));
  expect([...waiting, ...idle].every(({ isOpen }) => isOpen())).toBe(true);
  idle[0]?.socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n"); // now the last to become idle
  await expect.poll(() => idle[0]?.said().match(/200 OK/g)?.length).toBe(2);
  const fresh: typeof idle = [];
  for (let n = 0; n < 20; n++) fresh.push(await asking("/"));
  expect(fresh.map(({ said }) => said().slice(0, 15))).toEqual(Array(20).fill("HTTP/1.1 200 OK"));
  expect(waiting.every(({ isOpen }) => isOpen())).toBe(true);
  expect(idle.slice(1).some(({ isOpen }) => isOpen())).toBe(false);
  for (const reply of held) reply.end("late");
  await expect.poll(() => waiting.every(({ said }) => said().endsWith("late"))).toBe(true);
});

it("A connection without an accepted key gives way to a newer one once there are too many of these", async () => {
  Object.assign(limits, { strangersMax: 3, strangerGraceMs: 0 });
  server.prependListener("request", ({ url, socket }) => {
    if (url === "/known") connections.know(socket, 1);
  });
  const known = [await asking("/known"), await asking("/known"), await asking("/known")];
  const strangers = [await asking("/held"), await asking("/"), await asking("/held")];
  expect(strangers.every(({ isOpen }) => isOpen())).toBe(true);
  await asking("/held"); // closes the oldest one that was never answered, busy or not
  await expect.poll(() => strangers.map(({ isOpen }) => isOpen())).toEqual([false, true, true]);
  await asking("/held");
  await expect.poll(() => strangers.map(({ isOpen }) => isOpen())).toEqual([false, true, false]);
  for (let n = 0; n < 3; n++) await asking("/"); // then answered ones go too, the longest idle first
  await expect.poll(() => strangers.map(({ isOpen }) => isOpen())).toEqual([false, false, false]);
  expect(known.every(({ isOpen }) => isOpen())).toBe(true);
});

it("A connection is not closed before its first request can have come, however many come with it", async () => {
  Object.assign(limits, { strangersMax: 1, strangerGraceMs: 60_000 });
  const all = await Promise.all(Array.from({ length: 8 }, () => asking("/")));
  expect(all.every(({ isOpen }) => isOpen())).toBe(true);
  Object.assign(limits, { strangersAtOnceMax: 8 });
  await asking("/");
  await expect.poll(() => all.filter(({ isOpen }) => isOpen()).length).toBeLessThan(8);
  Object.assign(limits, { strangerGraceMs: 0 });
  await expect.poll(() => all.filter(({ isOpen }) => isOpen()).length).toBe(0);
});

it("A connection that was served outlives a burst of new ones, and those of them that send nothing", async () => {
  Object.assign(limits, { strangersMax: 4, strangersAtOnceMax: 8, strangerGraceMs: 300 });
  const health = await asking("/");
  const looks = async () => {
    const before = health.said().length;
    health.socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await expect.poll(() => health.said().length).toBeGreaterThan(before);
  };
  for (let n = 0; n < 40; n++) clients.push(connect(port, "127.0.0.1").on("error", () => {}));
  await looks();
  await expect.poll(() => clients.filter(({ destroyed }) => !destroyed).length).toBeLessThanOrEqual(4);
  await looks();
});

it("One owner's idle connections give way to its newer ones, and are refused if none is idle", async () => {
  Object.assign(limits, { connectionsPerOwnerMax: 2 });
  const known: boolean[] = [];
  server.prependListener("request", ({ socket }) => void known.push(connections.know(socket, 1)));
  const first = await asking("/");
  const second = await asking("/held");
  const third = await asking("/held");
  await expect.poll(first.isOpen).toBe(false);
  expect([second, third].every(({ isOpen }) => isOpen())).toBe(true);
  await asking("/");
  expect(known).toEqual([true, true, true, false]);
});
