import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { FastifyReply } from "fastify";
import { afterEach, beforeEach, expect, it } from "vitest";
import { goneSignal } from "./replies.js";

const server = createServer((_, reply) => void replies.push(reply));
let replies: ServerResponse[];
let client: Socket;

/** A client that has sent several requests at once, and their replies. */
beforeEach(async () => {
  replies = [];
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = connect((server.address() as AddressInfo).port, "127.0.0.1");
});
afterEach(() => {
  client.destroy();
  server.close();
  server.closeAllConnections();
});

async function asks(count: number): Promise<ServerResponse[]> {
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(count));
  while (replies.length < count) await once(server, "request");
  return replies;
}
async function leaves(): Promise<void> {
  const closed = once(replies[0] as ServerResponse, "close");
  client.resetAndDestroy();
  await closed;
}
const asReply = (raw: ServerResponse) => ({ raw }) as FastifyReply;

it("A client that disconnected before the first listener is still reported as gone", async () => {
  const [reply] = await asks(1);
  await leaves();
  expect(goneSignal(asReply(reply!)).aborted).toBe(true);
});

it("A disconnect reaches all replies of its connection", async () => {
  const gone = (await asks(3)).map((reply) => goneSignal(asReply(reply)));
  expect(gone.map(({ aborted }) => aborted)).toEqual([false, false, false]);
  await leaves();
  expect(gone.map(({ aborted }) => aborted)).toEqual([true, true, true]);
});
