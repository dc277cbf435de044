import { makePuppets, type Puppet, type PuppetEndpoint } from "../../e2e/puppet.js";
import { startServer, type TestServer } from "../../harness.js";
import { type Random, seeded } from "../random.js";
import type { DiskRecord } from "../shim/disk-journal.js";
import { ShimmedDisk } from "../shim/disk-shim.js";
import { loadDisk } from "./disk-load.js";
import { type Mark, recordsOf } from "./power-cuts.js";

/** The file that every commit syncs. */
export const wal = "millrace.db-wal";

/** A server with one endpoint and a worker, on a disk that keeps a journal of every operation. */
export class JournaledServer {
  readonly disk = new ShimmedDisk();
  readonly random: Random;
  readonly #undo: (() => Promise<void> | void)[] = [];
  server!: TestServer;
  endpoint!: string;
  #puppets!: PuppetEndpoint;

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  async start(env: Record<string, string> = {}): Promise<void> {
    this.mark({ of: "start" });
    const quiet = { MILLRACE_RATE_LIMITS: "off", MILLRACE_LOG_LEVEL: "warn" };
    this.server = await startServer({ ...this.disk.env, ...quiet, ...env });
    this.#puppets = await makePuppets({ onTestFinished: (undo) => void this.#undo.push(undo) }, this.server);
    this.endpoint = this.#puppets.id;
    this.mark({ of: "endpoint", id: this.endpoint });
  }

  worker(nth = 0): Promise<Puppet> {
    return this.#puppets.puppet(nth, 60_000);
  }

  /** Puts the server under load with its n-th worker, and returns when all jobs have ended. */
  async load(jobs: number, nthWorker = 0): Promise<void> {
    const { server, endpoint, random } = this;
    const worker = await this.worker(nthWorker);
    await loadDisk({ server, endpoint, worker, jobs, random, hear: (word) => this.mark(word) });
  }

  /** Starts the server again on the same disk. */
  async restart(): Promise<void> {
    this.mark({ of: "start" });
    await this.server.restart();
  }

  mark(mark: Mark): void {
    this.disk.mark(mark);
  }

  async end(): Promise<void> {
    for (const undo of this.#undo.reverse()) await undo();
    await this.server?.end();
    this.disk.end();
  }
}

/** Starts a fresh server on such a disk, runs `use`, and resolves with the journal. */
export async function recordDisk(
  seed: number,
  use: (journaled: JournaledServer) => Promise<void>,
  env = {},
): Promise<DiskRecord[]> {
  const journaled = new JournaledServer(seed);
  try {
    await journaled.start(env);
    await use(journaled);
    await journaled.server.stop();
    return recordsOf(journaled.disk);
  } finally {
    await journaled.end();
  }
}
