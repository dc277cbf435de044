import { get } from "node:http";
import { Pool } from "undici";
import type { PingAnswer } from "../../domain/health.js";
import type { Worker } from "../../domain/worker.js";
import type { WorkerAddress } from "../../domain/worker-address.js";
import { limits } from "../../limits.js";
import { dialled } from "../../operations/find-worker.js";

interface Dialled {
  /** The worker's address as its row has it. */
  readonly told: string | undefined;
  readonly pool: Pool;
}

/** Connections to workers: a pool for each. */
export class Dialler {
  readonly #hostNo: number;
  readonly #pools = new Map<number, Dialled>();

  constructor(hostNo: number) {
    this.#hostNo = hostNo;
  }

  /** The connections to one worker; undefined where it cannot be reached from here. */
  pool(row: Worker): Pool | undefined {
    const found = this.#pools.get(row.no);
    if (found && found.told === row.address) return found.pool;
    const address = dialled(row, this.#hostNo);
    if (!address) return undefined;
    this.forget(row.no);
    const pool = new Pool(`http://${urlHost(address.host)}:${address.port}`, {
      connections: null,
      pipelining: 1,
      keepAliveTimeout: limits.gateIdleMs,
      keepAliveMaxTimeout: limits.gateIdleMs,
      maxHeaderSize: limits.gateReplyHeaderBytesMax,
      connect: { timeout: limits.gateConnectMs, noDelay: true },
      autoSelectFamily: false,
    });
    this.#pools.set(row.no, { told: row.address, pool });
    return pool;
  }

  /** Where a connection of its own goes to. */
  address = (row: Worker): WorkerAddress | undefined => dialled(row, this.#hostNo);

  /** A worker has ended. What it has said may still be on its way. */
  forget(workerNo: number): void {
    const pool = this.#pools.get(workerNo)?.pool;
    if (!pool) return;
    this.#pools.delete(workerNo);
    const timer = setTimeout(() => void pool.destroy().catch(() => {}), limits.gateConnectMs).unref();
    void pool.close().then(
      () => clearTimeout(timer),
      () => {},
    );
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()].map(({ pool }) => pool);
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy().catch(() => {})));
  }
}

const urlHost = (host: string) => (host.includes(":") ? `[${host}]` : host);

/** Asks a worker for its health, on a connection of its own: what is busy with requests need not answer on theirs. */
export function ping({ host, healthPort }: WorkerAddress): Promise<PingAnswer> {
  return new Promise((resolve) => {
    const request = get({
      host,
      port: healthPort,
      path: "/ping",
      agent: false,
      headers: { "user-agent": "millrace", connection: "close" },
      signal: AbortSignal.timeout(limits.healthTimeoutMs),
    });
    request.once("response", (reply) => {
      reply.on("error", () => {});
      resolve(reply.statusCode === 200 ? "ready" : reply.statusCode === 204 ? "initialising" : "failed");
      reply.destroy();
    });
    request.on("error", () => resolve("failed"));
  });
}
