import { hostIsSilent, type Worker } from "../domain/workers/worker.js";

/** A worker's end as it became known here. */
interface Ending<Kept> {
  readonly worker: Kept;
  /** Counts up. */
  readonly n: number;
  /** The latest time at which this worker or one before it ended. */
  readonly latestAt: number;
}

/** The ends of workers in the order in which they became known. A day may bring very many, and most lookups want few. */
export class Endings<Kept extends { readonly row: Worker }> {
  #endings: Ending<Kept>[] = [];
  #count = 0;
  readonly #ofSilentHosts = new Set<Kept>();

  /** The workers that ended at a time or later. */
  since(at: number): Kept[] {
    const first = this.#endings.findLastIndex(({ latestAt }) => latestAt < at) + 1;
    const found = this.#endings.slice(first).map(({ worker }) => worker);
    return [...new Set(found)].filter(({ row }) => row.endedAt !== undefined && row.endedAt >= at);
  }

  /** The workers whose end became known after the `n`th end, and how many ends there were. Some may live again. */
  after(n: number): { readonly workers: readonly Kept[]; readonly n: number } {
    const first = this.#endings.findLastIndex((ending) => ending.n <= n) + 1;
    return { workers: this.#endings.slice(first).map(({ worker }) => worker), n: this.#count };
  }

  /** The workers that count as ended because nothing was heard of their host. */
  ofSilentHosts = (): ReadonlySet<Kept> => this.#ofSilentHosts;

  add(worker: Kept, endedAt: number): void {
    const latestAt = Math.max(this.#endings.at(-1)?.latestAt ?? 0, endedAt);
    this.#endings.push({ worker, n: ++this.#count, latestAt });
    if (worker.row.exit?.note === hostIsSilent) this.#ofSilentHosts.add(worker);
    else this.#ofSilentHosts.delete(worker);
  }

  /** Keeps the ends of these workers only. */
  keep(workers: ReadonlySet<Kept>): void {
    this.#endings = this.#endings.filter(({ worker }) => workers.has(worker));
    for (const worker of this.#ofSilentHosts) if (!workers.has(worker)) this.#ofSilentHosts.delete(worker);
  }
}
