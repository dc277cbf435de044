import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { call, type TestServer } from "../../harness.js";
import type { Hostile } from "./crowd.js";

/** How long an attack lasts. */
export const attackMs = 3_000;

/** Stops a connection from reading its answers. */
export const deaf = (member: Hostile) => member.socket.removeAllListeners("data").pause();

/** Makes or changes a resource. */
export const manage = async (server: TestServer, method: string, path: string, body: unknown) => {
  const reply = await call(server, method, path, body);
  expect(reply.status).toBe(200);
  return reply.body as { id: string };
};

/** Sends large bodies, some at a time, for as long as an attack goes on. */
export async function sendLarge(count: number, send: () => Promise<{ status: number }>): Promise<void> {
  const until = performance.now() + attackMs;
  const one = async () => {
    // A 503 means that the total size of such bodies has reached its bound.
    while (performance.now() < until) expect([200, 503]).toContain((await send()).status);
  };
  await Promise.all(Array.from({ length: count }, one));
}

/** A receiver of webhooks that reads slowly, and the number of bytes of each request that it has read. */
export async function startSlowReceiver(): Promise<{ read: number[]; url: string; receiver: Server }> {
  const read: number[] = [];
  const receiver = createServer((request, reply) => {
    let bytes = 0;
    request.on("data", (part: Buffer) => {
      bytes += part.length;
      request.pause();
      setTimeout(() => request.resume(), 5);
    });
    request.on("end", () => {
      read.push(bytes);
      reply.end();
    });
  });
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  return { read, url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`, receiver };
}
