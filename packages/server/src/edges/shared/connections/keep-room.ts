import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { realTime } from "../../../clock.js";
import { Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";

/** The connections of a server, of which each kind has a bounded share. */
export interface Connections {
  /**
   * Notes on whose behalf a connection made its last request; before that it is a stranger's. False if that owner has too
   * many connections, none of which is idle: then it is to be refused.
   */
  know(socket: Socket, ownerNo: number): boolean;
}

/**
 * Keeps room for new connections, of which there may be `most`. Once few are left, each new one closes the one that has
 * been idle longest, and a connection with a request under way is not closed.
 *
 * Connections without an accepted key have a small share of their own: whoever keeps thousands of them would hold up the
 * event loop when they all send, or close. Those that have had no reply yet give way first, whatever they do, unless they
 * are so new that their first request may still be on its way; so a burst does not cost a load balancer the connection by
 * which it looks at the health. An owner has a bounded share, too, of which idle ones give way.
 */
export function keepRoom(server: Server, most: number): Connections {
  const idle = new Set<Socket>(); // the one that has been idle longest is the first
  const open = new Set<Socket>();
  const newcomers = new Map<Socket, number>(); // strangers by the time they came, the oldest first
  const served = new Map<Socket, number>(); // those that have had a reply, by the time of the last one
  const owners = new Map<number, Set<Socket>>();
  const ownerOf = new WeakMap<Socket, number>();
  const requests = new WeakMap<Socket, number>();
  const forget = (socket: Socket) => {
    open.delete(socket);
    idle.delete(socket);
    newcomers.delete(socket);
    served.delete(socket);
    const ownerNo = ownerOf.get(socket);
    if (ownerNo === undefined) return;
    const own = owners.get(ownerNo);
    own?.delete(socket);
    if (own?.size === 0) owners.delete(ownerNo);
  };
  const dismiss = (socket: Socket | undefined) => {
    if (!socket) return;
    forget(socket); // its end comes later
    socket.destroy();
  };
  const firstIdle = (sockets: Iterable<Socket>): Socket | undefined => {
    for (const socket of sockets) if (idle.has(socket)) return socket;
    return undefined;
  };

  /** The first idle one, else the first, of those whose time is at least so long ago. */
  const firstOf = (sockets: ReadonlyMap<Socket, number>, graceMs: number): Socket | undefined => {
    const before = realTime.monotonicMs() - graceMs;
    let first: Socket | undefined;
    for (const [socket, at] of sockets) {
      if (at > before) break;
      if (idle.has(socket)) return socket;
      first ??= socket;
    }
    return first;
  };

  /** Undefined if there are not too many, or if those that are too many have just come. */
  const strangerToGo = (): Socket | undefined => {
    const count = newcomers.size + served.size;
    if (count < limits.strangersMax) return undefined;
    const old = firstOf(newcomers, limits.strangerGraceMs);
    if (old) return old;
    if (count >= limits.strangersAtOnceMax) return firstOf(newcomers, 0) ?? firstOf(served, 0);
    return served.size < limits.strangersMax ? undefined : firstOf(served, limits.strangerGraceMs);
  };

  // those that were new when others came
  const sweep = realTime.every(limits.strangersLookMs, () => {
    for (let n = 0; n < limits.strangersPerLook; n++) dismiss(strangerToGo());
  });
  sweep.unref();
  server.once("close", () => realTime.cancel(sweep));

  server.on("connection", (socket: Socket) => {
    if (open.has(socket)) return; // it is told of again after a request that was put back onto it
    if (open.size >= most) return void socket.destroy();
    open.add(socket);
    dismiss(strangerToGo());
    if (open.size > limits.connectionsKeptShare * most) {
      const [longest] = idle;
      dismiss(longest);
    }
    idle.add(socket);
    newcomers.set(socket, realTime.monotonicMs());
    socket.once("close", () => forget(socket));
  });
  const begin = ({ socket }: IncomingMessage, reply: ServerResponse) => {
    idle.delete(socket);
    requests.set(socket, (requests.get(socket) ?? 0) + 1);
    reply.once("close", () => {
      const left = (requests.get(socket) ?? 1) - 1;
      requests.set(socket, left);
      if (socket.destroyed) return;
      if (newcomers.delete(socket) || served.delete(socket)) served.set(socket, realTime.monotonicMs());
      if (left === 0) idle.add(socket);
    });
  };
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.prependListener(event, begin);
  // an upgraded connection is one request for as long as it lasts
  server.prependListener("upgrade", ({ socket }: IncomingMessage) => void idle.delete(socket));

  return {
    know(socket, ownerNo) {
      if (ownerOf.get(socket) === ownerNo || !open.has(socket)) return true;
      const own = owners.get(ownerNo) ?? new Set();
      if (own.size >= limits.connectionsPerOwnerMax) {
        const longest = firstIdle(own);
        if (!longest) return false;
        dismiss(longest);
      }
      owners.set(ownerNo, own.add(socket));
      newcomers.delete(socket);
      served.delete(socket);
      owners.get(ownerOf.get(socket) ?? -1)?.delete(socket);
      ownerOf.set(socket, ownerNo);
      return true;
    },
  };
}

export const tooManyConnections = (): Refusal =>
  new Refusal("UNAVAILABLE", "Too many connections of yours are open: close some, or send requests on fewer.", {
    retryAfterSeconds: 1,
  });
