import { get } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { buildConnector } from "undici";
import { realTime } from "../../../clock.js";
import type { PingAnswer } from "../../../domain/workers/health.js";
import type { Worker } from "../../../domain/workers/worker.js";
import { RouteAway, type WorkerAddress } from "../../../domain/workers/worker-address.js";
import { limits } from "../../../limits/index.js";
import type { Here } from "../../../operations/needs.js";
import { dialled } from "../../../operations/workers/find-worker.js";
import { readInTurns } from "../../../turns.js";
import { Connections } from "./connections.js";

interface Dialled {
  /** The worker's address as in its row. */
  readonly told: string | undefined;
  readonly connections: Connections;
}

/** Where a worker's HTTP server is reached from here. */
export interface Reach extends WorkerAddress {
  /** Connects to one of its ports, if its address is not reached. */
  readonly connect?: ((port: number) => Promise<Duplex>) | undefined;
}

/** Connections to all workers. */
export class Dialler {
  readonly #here: Pick<Here, "hostNo" | "clusters">;
  readonly #dialled = new Map<number, Dialled>();

  constructor(here: Pick<Here, "hostNo" | "clusters">) {
    this.#here = here;
  }

  /** The connections to one worker; undefined if it cannot be reached from here. */
  connections(row: Worker): Connections | undefined {
    const found = this.#dialled.get(row.no);
    if (found && found.told === row.address) return found.connections;
    const reach = this.reach(row);
    if (!reach) return undefined;
    this.forget(row.no);
    const connections = new Connections(`http://${urlHost(reach.host)}:${reach.port}`, {
      pipelining: 1,
      keepAliveTimeout: limits.gateIdleMs,
      keepAliveMaxTimeout: limits.gateIdleMs,
      maxHeaderSize: limits.gateReplyHeaderBytesMax,
      connect: connectorTo(row.no, reach),
    });
    this.#dialled.set(row.no, { told: row.address, connections });
    return connections;
  }

  /** For a connection outside the pool. */
  reach(row: Worker): Reach | undefined {
    const address = dialled(row, this.#here.hostNo);
    const connect = this.#here.clusters.find(({ no }) => no === row.hostNo)?.connect;
    return address && connect ? { ...address, connect: (port) => connect(row, port) } : address;
  }

  /** Asks a worker for its health. */
  async ping(row: Worker): Promise<PingAnswer> {
    const reach = this.reach(row);
    return reach ? ping(reach) : "failed";
  }

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
function connectorTo(workerNo: number, reach: Reach): buildConnector.connector {
  const lane = ["workers' replies", workerNo] as const;
  const use = <T extends Duplex>(stream: T): T => {
    readInTurns(stream, lane);
    return stream;
  };
  return (to, done) => {
    const { connect: through } = reach;
    if (through)
      through(reach.port).then(
        (stream) => done(null, use(stream) as Socket), // what undici asks of it every stream can do
        (error) => done(error, null),
      );
    else connect(to, (...[error, socket]) => (error ? done(error, null) : done(null, use(socket))));
  };
}

const urlHost = (host: string) => (host.includes(":") ? `[${host}]` : host);

/** Pings a worker on a separate connection, because the connections for requests may be busy. */
async function ping({ host, healthPort, connect }: Reach): Promise<PingAnswer> {
  let stream: Duplex | undefined;
  try {
    stream = await connect?.(healthPort);
  } catch (error) {
    return error instanceof RouteAway ? { unreached: error.message, detail: error.detail } : "failed";
  }
  return new Promise((resolve) => {
    const request = get({
      host,
      port: healthPort,
      path: "/ping",
      ...(stream ? { createConnection: () => stream } : { agent: false }),
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
