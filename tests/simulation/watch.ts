import { needOf } from "../../packages/server/src/domain/workers/placement.js";
import { isThrottled, type Worker } from "../../packages/server/src/domain/workers/worker.js";
import { type Fleet, isOpen, isWaiting, type KnownRow, workingVersion } from "./fleet.js";
import type { Ledger } from "./ledger.js";
import type { Machine } from "./machine.js";
import type { Server } from "./server.js";
import type { WorkerDouble } from "./worker-double.js";

/** What can be looked at of workers and the machine when everything is at rest. */
export interface Watched {
  readonly ledger: Ledger;
  readonly fleet: Fleet;
  readonly machine: Machine;
  readonly host: { readonly doubles: ReadonlyMap<string, WorkerDouble> };
  readonly server: Server | undefined;
  readonly now: () => number;
  broken(rule: string, sentence: string): void;
}

/** What may be so for a moment: the loops look again every 5 s, whatever they hear. */
const momentMs = 6_000;

/** Holds against the servers what they leave as it is for too long. */
export class Watch {
  readonly #scene: Watched;
  #since = new Map<string, number>();

  constructor(scene: Watched) {
    this.#scene = scene;
  }

  /** When something may have been so for too long, though nothing else happens. */
  get dueAt(): number {
    return Math.min(...this.#since.values()) + momentMs + 1;
  }

  check(): void {
    this.#checkShares();
    const { server, now } = this.#scene;
    const isServed = server?.isReady && !server.isHeld && !server.isOver && !server.isDraining;
    const found = isServed ? [...this.#frozen(), ...this.#unserved(), ...this.#unplaced(), ...this.#crippled()] : [];
    const before = this.#since;
    this.#since = new Map();
    for (const [rule, sentence] of found) {
      const name = `${rule}: ${sentence}`;
      const since = Math.max(before.get(name) ?? now(), server?.listensSince ?? 0);
      this.#since.set(name, since);
      if (now() - since > momentMs) this.#scene.broken(rule, `${sentence}, for ${now() - since} ms`);
    }
  }

  /** What one worker has, no other has; and all of them have no more than there is. */
  #checkShares(): void {
    const { fleet, machine, broken } = this.#scene;
    const { cpus, memoryMib } = machine.facts();
    const holders = new Map<string, string>();
    const sum = { cpus: 0, memoryMib: 0 };
    for (const { id, endedAt, resources } of fleet.workers.values()) {
      if (endedAt !== undefined || !resources) continue;
      for (const gpu of resources.gpus) {
        const other = holders.get(gpu.id);
        if (other) broken("what one worker has, no other has", `${other} and ${id} have ${gpu.id}`);
        holders.set(gpu.id, id);
      }
      sum.cpus += resources.cpus ?? 0;
      sum.memoryMib += resources.memoryMib ?? 0;
    }
    if (sum.cpus > cpus || sum.memoryMib > memoryMib)
      broken("what one worker has, no other has", `${sum.cpus} CPUs, ${sum.memoryMib} MiB of ${cpus}, ${memoryMib}`);
  }

  /** A worker that is to run is not frozen, and a frozen one has nothing to do. */
  *#frozen(): Iterable<[string, string]> {
    const { fleet, host, ledger } = this.#scene;
    for (const row of fleet.workers.values()) {
      const double = host.doubles.get(row.id);
      if (!double?.isAlive || double.pausedAt === undefined) continue;
      if (row.wanted !== "paused") yield ["frozen no longer than wanted", `${row.id} is wanted ${row.wanted}`];
    }
    for (const job of ledger.jobs.values()) {
      if (job.status !== "IN_PROGRESS" || job.gone) continue;
      const row = fleet.workers.get(job.holder as number);
      const double = row && host.doubles.get(row.id);
      if (double?.isAlive && double.pausedAt !== undefined)
        yield ["a frozen worker holds no job", `${job.id} is at ${row?.id}`];
    }
  }

  /** No job waits where all that it needs is there, and frozen. */
  *#unserved(): Iterable<[string, string]> {
    const { fleet, ledger, now } = this.#scene;
    const waiting = new Set<number>();
    for (const job of ledger.jobs.values()) if (isWaiting(job, now())) waiting.add(job.endpointNo);
    for (const no of waiting) {
      const endpoint = fleet.endpoints.get(no);
      if (!endpoint || endpoint.isDeleted || endpoint.settings.workersMax === 0) continue;
      const rows = fleet.workersOf(no);
      const paused = rows.find((row) => row.wanted === "paused" && row.version === workingVersion(endpoint));
      if (paused && !rows.some(isOpen)) yield ["jobs wake who is frozen", `jobs of endpoint ${no} wait`];
    }
  }

  /** A worker that waits for a place has one as soon as one is free, or held by one that is frozen. */
  *#unplaced(): Iterable<[string, string]> {
    for (const row of this.#scene.fleet.workers.values()) {
      if (!isOpen(row) || !isThrottled(row)) continue;
      // those who go anyway are waited for before others have to
      const mayHave = this.#fits(row, "paused") && !this.#fits(row, "stopped");
      if (mayHave || this.#fits(row, undefined)) yield ["a place that is free is given", `${row.id} waits for a place`];
    }
  }

  /** Whether there is a place for it, without those of whom this is wanted. */
  #fits(row: KnownRow, left: Worker["wanted"] | undefined): boolean {
    const { fleet, machine } = this.#scene;
    const endpoint = fleet.endpoints.get(row.endpointNo);
    // what those of other versions need is not in these settings
    if (!endpoint || endpoint.isDeleted || row.version !== endpoint.version) return false;
    const { gpuCount, gpuTypes, shares } = needOf(endpoint.settings);
    const facts = machine.facts();
    const held = [...fleet.workers.values()].filter(
      ({ endedAt, wanted, resources }) => endedAt === undefined && wanted !== left && resources !== undefined,
    );
    const taken = new Set(held.flatMap(({ resources }) => resources?.gpus.map(({ id }) => id) ?? []));
    const free = facts.gpus.filter(({ id, name }) => !taken.has(id) && (!gpuTypes.length || gpuTypes.includes(name)));
    const most = Math.max(0, ...free.map(({ name }) => free.filter((other) => other.name === name).length));
    const sum = (of: "cpus" | "memoryMib") => held.reduce((all, { resources }) => all + (resources?.[of] ?? 0), 0);
    const hasGpus = most >= gpuCount || !facts.gpusEnforced;
    const [cpus, memoryMib] = [facts.cpus - sum("cpus"), facts.memoryMib - sum("memoryMib")];
    return hasGpus && shares.some((share) => (share.cpus ?? 0) <= cpus && (share.memoryMib ?? 0) <= memoryMib);
  }

  /** A worker whose GPU fell off gets no jobs. */
  *#crippled(): Iterable<[string, string]> {
    const { fleet, machine } = this.#scene;
    const { gpus, gpusUnseen } = machine.facts();
    if (gpusUnseen) return;
    for (const row of fleet.workers.values()) {
      if (!isOpen(row) || row.startedAt === undefined) continue;
      const lost = row.resources?.gpus.find(({ id }) => !gpus.some((gpu) => gpu.id === id));
      if (lost) yield ["a worker without its GPU is closed", `${row.id} has lost ${lost.id}`];
    }
  }
}
