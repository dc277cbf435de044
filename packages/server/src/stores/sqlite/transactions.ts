import { limits } from "../../limits/index.js";
import type { DiskReserve } from "./disk-reserve.js";
import type { Database } from "./driver.js";
import { isFatal, isFull, isLocked } from "./failures.js";
import { bringLog } from "./wal.js";

/** A write as data: its verb and its arguments. It may cross to another thread. */
export interface Write {
  readonly verb: string;
  readonly args: readonly unknown[];
}

/** What became of a write. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly isFull: boolean; readonly isLocked?: boolean };

// biome-ignore lint/suspicious/noExplicitAny: each store types its own verbs; here they are only called
export type Verbs = Readonly<Record<string, (...args: any[]) => unknown>>;

/** What runs inside each transaction beside the calls: counts gathered in memory, written once a group. */
export interface Gathered {
  /** Writes what was gathered, just before the commit. */
  flush(): void;
  /** Forgets what was gathered, after a rollback. */
  discard(): void;
}

/**
 * Runs groups of writes on the only connection that writes, each in one transaction. A group that fails is run again write by
 * write, so that a bad row fails alone; but where another process holds the lock, each would wait for it again, and the group
 * fails as one. Throws where the disk has failed: a failed fsync is never retried, since what the disk
 * holds is unknown, and the process must end.
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
   * Brings the log into the database file when enough has gathered in it; throws where the disk has failed. What a reader's
   * snapshot holds back is brought soon after: the log begins anew only once all of it is in the file.
   */
  checkpoint(): void {
    if (this.#isHeld || this.#writesToCheckpoint > 0) return;
    const pagesLeft = bringLog(this.#db);
    this.#writesToCheckpoint = pagesLeft > 0 ? limits.checkpointAgainWrites : limits.checkpointWrites;
  }

  /** Leaves the log to another connection, until `finishCheckpoint`: two would wait for each other, and one may fail. */
  holdCheckpoints(): void {
    this.#isHeld = true;
  }

  /** Brings the end of the log, which was written beside the other connection's checkpoint. */
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
      // with the room that was given up, what is on its way is finished
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
        // SQLite has rolled back by itself
      }
      throw error;
    }
  }
}
