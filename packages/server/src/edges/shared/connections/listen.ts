import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { limits } from "../../../limits/index.js";

export interface Listening {
  readonly port: number;
  /** Stops listening, and resolves once all connections are closed. */
  close(): Promise<void>;
}

/**
 * Lets a server listen on several sockets of one port. A socket gives out one connection each time the event loop comes
 * round: while requests fill its turns, connections that come quickly would wait for seconds at a single one. Rejects
 * with the system's error, also if another program has the port.
 */
export async function listen(server: HttpServer, host: string, port: number): Promise<Listening> {
  if (process.platform !== "linux") {
    await open(server, { host, port });
    return { port: portOf(server), close: () => closed(server) };
  }
  // sockets that share a port share it with other programs, too: one that does not finds out whether it is free
  const probe = createServer();
  await open(probe, { host, port });
  const chosen = portOf(probe);
  await closed(probe);
  const acceptors = Array.from({ length: limits.acceptors - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (isReset(socket)) socket.destroy();
      else server.emit("connection", socket);
    }),
  );
  const all = [server, ...acceptors];
  try {
    for (const each of all) await open(each, { host, port: chosen, reusePort: true });
  } catch (error) {
    for (const each of all) each.close();
    throw error;
  }
  return { port: chosen, close: async () => void (await Promise.all(all.map(closed))) };
}

/**
 * Whether a client reset its connection while it waited to be accepted. Nobody would get a reply, and an error with its
 * stack costs more than everything else that is done for a connection: during a flood of resets, new connections waited
 * for seconds.
 */
const isReset = (socket: Socket): boolean => socket.remoteAddress === undefined;

async function open(server: Server, where: { host: string; port: number; reusePort?: true }): Promise<void> {
  server.listen({ ...where, backlog: limits.acceptBacklog });
  await once(server, "listening"); // rejects if an error comes first
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

const closed = (server: Server): Promise<void> => new Promise((done) => void server.close(() => done()));
