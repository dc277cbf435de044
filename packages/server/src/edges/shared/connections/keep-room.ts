import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { limits } from "../../../limits/index.js";

/**
 * Keeps room for new connections, of which there may be `most`. Once few are left, each new one closes the one that has
 * been idle longest. A connection with a request under way is never closed.
 */
export function keepRoom(server: Server, most: number): void {
  const idle = new Set<Socket>(); // the one that has been idle longest is the first
  const open = new Set<Socket>();
  const requests = new WeakMap<Socket, number>();
  server.maxConnections = most;
  server.on("connection", (socket: Socket) => {
    if (open.has(socket)) return; // it is told of again after a request that was put back onto it
    open.add(socket);
    if (open.size > limits.connectionsKeptShare * most) {
      const [longest] = idle;
      longest?.destroy();
    }
    idle.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      idle.delete(socket);
    });
  });
  const begin = ({ socket }: IncomingMessage, reply: ServerResponse) => {
    idle.delete(socket);
    requests.set(socket, (requests.get(socket) ?? 0) + 1);
    reply.once("close", () => {
      const left = (requests.get(socket) ?? 1) - 1;
      requests.set(socket, left);
      if (left === 0 && !socket.destroyed) idle.add(socket);
    });
  };
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.prependListener(event, begin);
  // an upgraded connection is one request for as long as it lasts
  server.prependListener("upgrade", ({ socket }: IncomingMessage) => void idle.delete(socket));
}
