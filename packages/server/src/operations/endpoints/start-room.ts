import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { Worker } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";

const isUp = ({ readyAt }: Worker): boolean => readyAt !== undefined;

/**
 * How many more workers each user may start, counted once for all decisions of a pass: thousands that find no place would
 * cost every look at the workers its time.
 */
export class StartRoom {
  readonly #registry: Needs<"registry">["registry"];
  /** Workers that are not up yet, by owner. */
  #starting: Map<number, number> | undefined;

  constructor({ registry }: Needs<"registry">) {
    this.#registry = registry;
  }

  /** An endpoint always gets its first worker, so that its jobs do not wait for the workers of its user's other endpoints. */
  left({ no, ownerNo }: Endpoint): number {
    const least = this.#registry.workersOf(no).every(({ row }) => isUp(row)) ? 1 : 0;
    return Math.max(least, limits.unreadyWorkersPerUserMax - (this.#counts().get(ownerNo) ?? 0));
  }

  /** Notes that workers of an endpoint were started. */
  take({ ownerNo }: Endpoint, count: number): void {
    if (count > 0 && this.#starting) this.#add(this.#starting, ownerNo, count);
  }

  #counts(): ReadonlyMap<number, number> {
    if (this.#starting) return this.#starting;
    const counts = new Map<number, number>();
    for (const { row } of this.#registry.liveWorkers()) {
      const owner = isUp(row) ? undefined : this.#registry.endpointByNo(row.endpointNo)?.ownerNo;
      if (owner !== undefined) this.#add(counts, owner, 1);
    }
    this.#starting = counts;
    return counts;
  }

  #add(counts: Map<number, number>, ownerNo: number, count: number): void {
    counts.set(ownerNo, (counts.get(ownerNo) ?? 0) + count);
  }
}
