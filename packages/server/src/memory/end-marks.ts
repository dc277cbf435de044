import type { LiveWorker } from "./live-workers.js";

/**
 * Ended workers for which something has been done, once each. An end that could not be written is taken back: the
 * worker's next end is another one.
 */
export class EndMarks {
  readonly #endedAt = new WeakMap<LiveWorker, number | undefined>();

  /** Marks a worker as it was when it had ended at that time: it may have changed since. */
  add(worker: LiveWorker, endedAt: number | undefined): void {
    this.#endedAt.set(worker, endedAt);
  }

  has(worker: LiveWorker): boolean {
    return worker.row.endedAt !== undefined && this.#endedAt.get(worker) === worker.row.endedAt;
  }
}
