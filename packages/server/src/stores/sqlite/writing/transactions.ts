import { limits } from "../../../limits/index.js";
import type { DiskReserve } from "../disk/disk-reserve.js";
import { bringLog } from "../disk/wal.js";
import type { Database } from "../driver.js";
import { isFatal, isFull, isLocked } from "../failures.js";

/** A write as data: its verb and its arguments. It may cross to another thread. */
export interface Write {
  readonly verb: string;
  readonly args: readonly unknown[];
}

/** The result of a write. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly isFull: boolean; readonly isLocked?: boolean };

// biome-ignore lint/suspicious/noExplicitAny: each store types its own verbs; here they are only called
export type Verbs = Readonly<Record<string, (...args: any[]) => unknown>>;

/** Runs inside each transaction beside the calls: counts gathered in memory and written once per group. */
export interface Gathered {
  /** Writes what was gathered, just before the commit. */
  flush(): void;
  /** Discards what was gathered, after a rollback. */
  discard(): void;
}

/**
 * Runs groups of writes on the only connection that writes, each group in one transaction. A failed group is retried
 * write by write, so that a bad row fails alone. If another process holds the lock, the group fails as a whole, because
 * each write would wait for the lock again. Throws if the disk has failed: a failed fsync is never retried, since the
 * disk's content is unknown, and the process must end.
 */
export class Transactions {
  readonly #db: Database;
  readonly #gathered: Gathered;
  readonly #verbs: Verbs;
  readonly #reserve: Pick<DiskReserve, "release">;
  #writesToCheckpoint: number = limits.checkpointWrites;
  #isHeld = false;

  constructor(db: Database, gathered: Gathered, verbs: Verbs, reserve: Pick<DiskReserve, "release">) {
    this.#db = db;
    this.#gathered = gathered;
    this.#verbs = verbs;
    this.#reserve = reserve;
  }

  /**
   * Checkpoints the log if it is large enough; throws if the disk has failed. If a reader's snapshot holds back a part,
   * the rest follows soon: the log restarts only once all of it is in the database file.
   */
  checkpoint(): void {
    if (this.#isHeld || this.#writesToCheckpoint > 0) return;
    const pagesLeft = bringLog(this.#db);
    this.#writesToCheckpoint = pagesLeft > 0 ? limits.checkpointAgainWrites : limits.checkpointWrites;
  }

  /**
   * Leaves checkpoints to another connection until `finishCheckpoint`: two would wait for each other, and one might
   * fail.
   */
  holdCheckpoints(): void {
    this.#isHeld = true;
  }

  /** Checkpoints the end of the log, which was written during the other connection's checkpoint. */
  finishCheckpoint(): void {
    this.#isHeld = false;
    this.#writesToCheckpoint = 0;
    this.checkpoint();
  }

  run(group: readonly Write[]): Outcome[] {
    this.#writesToCheckpoint -= group.length;
    try {
      return this.#commit(group);
    } catch (error) {
      if (isFatal(error)) throw error;
      // the freed space lets calls that are in flight finish
      if (isFull(error) && this.#reserve.release()) return this.run(group);
      if (isLocked(error))
        return group.map(() => ({ ok: false, message: error.message, isFull: false, isLocked: true }));
      if (group.length > 1) return group.flatMap((write) => this.run([write]));
      return [{ ok: false, message: error instanceof Error ? error.message : String(error), isFull: isFull(error) }];
    }
  }

  #commit(group: readonly Write[]): Outcome[] {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const values = group.map(({ verb, args }) => this.#verbs[verb]!(...args));
      this.#gathered.flush();
      this.#db.exec("COMMIT");
      return values.map((value) => ({ ok: true, value }));
    } catch (error) {
      this.#gathered.discard();
      try {
        this.#db.exec("ROLLBACK");
      } catch {
        // SQLite has already rolled back
      }
      throw error;
    }
  }
}
