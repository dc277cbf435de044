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
 * Whether a client has reset its connection while it waited. To read from it would be an error with a stack, which costs
 * more than all else that is done for such a connection; floods of them made others' connections wait.
 */
const isReset = (socket: Socket): boolean => socket.remoteAddress === undefined;

async function open(server: Server, where: { host: string; port: number; reusePort?: true }): Promise<void> {
  server.listen({ ...where, backlog: limits.acceptBacklog });
  await once(server, "listening"); // rejects if an error comes first
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

const closed = (server: Server): Promise<void> => new Promise((done) => void server.close(() => done()));
