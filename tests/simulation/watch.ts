import { needOf } from "../../packages/server/src/domain/workers/need.js";
import { isThrottled, type Worker } from "../../packages/server/src/domain/workers/worker.js";
import { type Fleet, isOpen, isWaiting, type KnownRow, workingVersion } from "./fleet.js";
import type { Ledger } from "./ledger.js";
import type { Machine } from "./machine.js";
import type { Server } from "./server.js";
import type { WorkerDouble } from "./worker-double.js";

/** The state of workers and machine that can be checked when everything is at rest. */
export interface Watched {
  readonly ledger: Ledger;
  readonly fleet: Fleet;
  readonly machine: Machine;
  readonly host: { readonly doubles: ReadonlyMap<string, WorkerDouble> };
  readonly server: Server | undefined;
  readonly now: () => number;
  broken(rule: string, sentence: string): void;
}

/** How long a state may last before it is wrong: the loops tick every 5 s in any case. */
const momentMs = 6_000;

/** Detects states that the servers leave unchanged for too long. */
export class Watch {
  readonly #scene: Watched;
  #since = new Map<string, number>();

  constructor(scene: Watched) {
    this.#scene = scene;
  }

  /** When a state may have lasted too long, even if nothing else happens. */
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

  /** No two workers may have the same resource, and all workers together no more than the machine has. */
  #checkShares(): void {
    const { fleet, machine, broken } = this.#scene;
    const { cpus, memoryMib } = machine.facts();
    const holders = new Map<string, string>();
    const sum = { cpus: 0, memoryMib: 0 };
    for (const { id, endedAt, resources } of fleet.workers.values()) {
      if (endedAt !== undefined || !resources) continue;
      for (const gpu of resources.gpus) {
        const other = holders.get(gpu.id);
        if (other) broken("workers share no resource", `${other} and ${id} have ${gpu.id}`);
        holders.set(gpu.id, id);
      }
      sum.cpus += resources.cpus ?? 0;
      sum.memoryMib += resources.memoryMib ?? 0;
    }
    if (sum.cpus > cpus || sum.memoryMib > memoryMib)
      broken("workers share no resource", `${sum.cpus} CPUs, ${sum.memoryMib} MiB of ${cpus}, ${memoryMib}`);
  }

  /** A worker that is wanted running must not be frozen, and a frozen worker must have no job. */
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

  /** No job may wait while its resources exist, and are frozen. */
  *#unserved(): Iterable<[string, string]> {
    const { fleet, ledger, now } = this.#scene;
    const waiting = new Set<number>();
    for (const job of ledger.jobs.values()) if (isWaiting(job, now())) waiting.add(job.endpointNo);
    for (const no of waiting) {
      const endpoint = fleet.endpoints.get(no);
      if (!endpoint || endpoint.isDeleted || endpoint.settings.workersMax === 0) continue;
      const rows = fleet.workersOf(no);
      const paused = rows.find((row) => row.wanted === "paused" && row.version === workingVersion(endpoint));
      if (paused && !rows.some(isOpen)) yield ["jobs wake frozen workers", `jobs of endpoint ${no} wait`];
    }
  }

  /** A waiting worker must get a place as soon as one is free, or is held by a frozen worker. */
  *#unplaced(): Iterable<[string, string]> {
    for (const row of this.#scene.fleet.workers.values()) {
      if (!isOpen(row) || !isThrottled(row)) continue;
      // The places of workers that stop anyway are used before others have to stop.
      const mayHave = this.#fits(row, "paused") && !this.#fits(row, "stopped");
      if (mayHave || this.#fits(row, undefined))
        yield ["a free place is given to a waiting worker", `${row.id} waits for a place`];
    }
  }

  /** Whether there is a place for it, not counting workers whose `wanted` is `left`. */
  #fits(row: KnownRow, left: Worker["wanted"] | undefined): boolean {
    const { fleet, machine } = this.#scene;
    const endpoint = fleet.endpoints.get(row.endpointNo);
    // The needs of other versions are not in these settings.
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

  /** A worker whose GPU is lost gets no job. */
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
