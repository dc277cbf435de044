import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { realTime } from "../../../clock.js";
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
  const mayServe = perSecond(limits.resetsServedPerSecond);
  const acceptors = Array.from({ length: limits.acceptors - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (isReset(socket) && !mayServe()) socket.destroy();
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
 * Whether a client reset its connection while it waited to be accepted. What it had sent can still be read, and may be a
 * job or a result.
 */
const isReset = (socket: Socket): boolean => socket.remoteAddress === undefined;

/**
 * Allows a number of calls a second. Nobody gets the reply on a connection that was reset, and the error that its end is,
 * with a stack, costs more than the rest: during a flood of them, new connections of others waited for seconds.
 */
function perSecond(most: number): () => boolean {
  let [beganAt, count] = [0, 0];
  return () => {
    const now = realTime.monotonicMs();
    if (now >= beganAt + 1_000) [beganAt, count] = [now, 0];
    count++;
    return count <= most;
  };
}

async function open(server: Server, where: { host: string; port: number; reusePort?: true }): Promise<void> {
  server.listen({ ...where, backlog: limits.acceptBacklog });
  await once(server, "listening"); // rejects if an error comes first
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

const closed = (server: Server): Promise<void> => new Promise((done) => void server.close(() => done()));
