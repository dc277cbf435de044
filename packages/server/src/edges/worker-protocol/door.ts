import { randomUUID } from "node:crypto";
import type { RequestListener } from "node:http";
import { Refusal } from "../../errors.js";
import { type Door, openDoor } from "../shared/connections/door.js";
import { sendPlainRefusal } from "../shared/replies/plain-refusal.js";

/** The address where containers reach a server that listens only on loopback. */
export interface WorkersDoor {
  /** Resolves with the address to call; rejects with one sentence if there is none. */
  open(gateway: string): Promise<string>;
  close(): Promise<void>;
}

/**
 * A second listener on the first one's port, for the worker routes only. It opens when the first container needs it.
 */
export function workersDoor(host: string, door: Door): WorkersDoor {
  const doors = new Map<string, Promise<Door>>();
  const openAt = async (gateway: string): Promise<Door> => {
    const side = await openDoor(gateway, door.port);
    side.take(workersOnly((request, reply) => door.server.emit("request", request, reply)));
    return side;
  };
  return {
    async open(gateway) {
      if (host === "0.0.0.0" || host === "::") return gateway;
      if (!/^(127\.|::1$|localhost$)/.test(host)) return host;
      const opened = doors.get(gateway) ?? openAt(gateway);
      doors.set(gateway, opened);
      await opened.catch((error) => {
        doors.delete(gateway);
        throw new Error(sentence(error, `${gateway}:${door.port}`));
      });
      return gateway;
    },
    async close() {
      for (const opened of doors.values()) await opened.then((side) => side.close()).catch(() => {});
    },
  };
}

const sentence = ({ code, message }: NodeJS.ErrnoException, address: string): string =>
  code === "EADDRNOTAVAIL" // the engine is another machine's
    ? "containers have no way back to this server: set MILLRACE_WORKER_URL to an address that they reach"
    : `the workers' door at ${address} could not be opened (${message})`;

const elsewhere = new Refusal("NOT_FOUND", "Only workers are served at this address.");
const workerCall = /^\/v2\/[a-z0-9]+\/(job-take|job-take-batch|job-stop|job-stream|job-done|job-done-batch|ping)\//;

/** Passes workers' calls on and refuses everything else with 404, because others may reach this listener, too. */
function workersOnly(listener: RequestListener): RequestListener {
  return (request, reply) => {
    if (workerCall.test(request.url ?? "")) return listener(request, reply);
    request.resume();
    sendPlainRefusal(reply, randomUUID(), elsewhere);
  };
}
