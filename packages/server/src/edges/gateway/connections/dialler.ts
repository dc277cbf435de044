import { get } from "node:http";
import { buildConnector } from "undici";
import { realTime } from "../../../clock.js";
import type { PingAnswer } from "../../../domain/workers/health.js";
import type { Worker } from "../../../domain/workers/worker.js";
import type { WorkerAddress } from "../../../domain/workers/worker-address.js";
import { limits } from "../../../limits/index.js";
import { dialled } from "../../../operations/workers/find-worker.js";
import { readInTurns } from "../../../turns.js";
import { Connections } from "./connections.js";

interface Dialled {
  /** The worker's address as in its row. */
  readonly told: string | undefined;
  readonly connections: Connections;
}

/** Connections to all workers. */
export class Dialler {
  readonly #hostNo: number;
  readonly #dialled = new Map<number, Dialled>();

  constructor(hostNo: number) {
    this.#hostNo = hostNo;
  }

  /** The connections to one worker; undefined if it cannot be reached from here. */
  connections(row: Worker): Connections | undefined {
    const found = this.#dialled.get(row.no);
    if (found && found.told === row.address) return found.connections;
    const address = dialled(row, this.#hostNo);
    if (!address) return undefined;
    this.forget(row.no);
    const connections = new Connections(`http://${urlHost(address.host)}:${address.port}`, {
      pipelining: 1,
      keepAliveTimeout: limits.gateIdleMs,
      keepAliveMaxTimeout: limits.gateIdleMs,
      maxHeaderSize: limits.gateReplyHeaderBytesMax,
      connect: connectorTo(row.no),
    });
    this.#dialled.set(row.no, { told: row.address, connections });
    return connections;
  }

  /** The address for a connection outside the pool. */
  address = (row: Worker): WorkerAddress | undefined => dialled(row, this.#hostNo);

  /** Forgets a worker that has ended. Its last replies may still be on their way. */
  forget(workerNo: number): void {
    const connections = this.#dialled.get(workerNo)?.connections;
    if (!connections) return;
    this.#dialled.delete(workerNo);
    const timer = realTime.after(limits.gateConnectMs, () => void connections.destroy().catch(() => {})).unref();
    void connections.close().then(
      () => realTime.cancel(timer),
      () => {},
    );
  }

  async close(): Promise<void> {
    const all = [...this.#dialled.values()].map(({ connections }) => connections);
    this.#dialled.clear();
    await Promise.all(all.map((connections) => connections.destroy().catch(() => {})));
  }
}

const connect = buildConnector({ timeout: limits.gateConnectMs, noDelay: true, autoSelectFamily: false });

/** Connects to a worker. Its replies and those of other workers are read in turns. */
function connectorTo(workerNo: number): buildConnector.connector {
  const lane = ["workers' replies", workerNo] as const;
  return (to, done) =>
    connect(to, (...[error, socket]) => {
      if (error) return done(error, null);
      readInTurns(socket, lane);
      done(null, socket);
    });
}

const urlHost = (host: string) => (host.includes(":") ? `[${host}]` : host);

/** Pings a worker on a separate connection, because the connections for requests may be busy. */
export function ping({ host, healthPort }: WorkerAddress): Promise<PingAnswer> {
  return new Promise((resolve) => {
    const request = get({
      host,
      port: healthPort,
      path: "/ping",
      agent: false,
      headers: { "user-agent": "millrace", connection: "close" },
      signal: realTime.abortAfter(limits.healthTimeoutMs),
    });
    request.once("response", (reply) => {
      reply.on("error", () => {});
      resolve(reply.statusCode === 200 ? "ready" : reply.statusCode === 204 ? "initialising" : "failed");
      reply.destroy();
    });
    request.on("error", () => resolve("failed"));
  });
}
