import { busy, Refusal } from "../../errors.js";
import { limits } from "../../limits.js";
import type { DiskReserve } from "./disk-reserve.js";
import type { Database } from "./driver.js";

/** A write as data: its verb, its arguments, and about how many bytes it carries. */
interface Call {
  readonly verb: string;
  readonly args: readonly unknown[];
  readonly bytes: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

// biome-ignore lint/suspicious/noExplicitAny: each store types its own verbs; the writer only calls them
type Verbs = Readonly<Record<string, (...args: any[]) => unknown>>;

/** What runs inside each transaction beside the calls: counts gathered in memory, written once a group. */
export interface Gathered {
  /** Writes what was gathered, just before the commit. */
  flush(): void;
  /** Forgets what was gathered, after a rollback. */
  discard(): void;
}

/**
 * The only connection that writes. What has gathered since the last turn of the event loop runs in one transaction;
 * a promise resolves when its group is on disk. A group that fails is run again call by call, so that a bad row fails alone.
 */
export class GroupWriter {
  readonly #db: Database;
  readonly #gathered: Gathered;
  readonly #onFatal: (error: Error) => void;
  readonly #reserve: DiskReserve;
  #verbs: Verbs = {};
  /** Workers' words and our own go first. */
  #words: Call[] = [];
  #queue: Call[] = [];
  #queuedBytes = 0;
  #scheduled = false;
  #closed = false;

  constructor(db: Database, gathered: Gathered, parts: { onFatal: (error: Error) => void; reserve: DiskReserve }) {
    this.#db = db;
    this.#gathered = gathered;
    this.#onFatal = parts.onFatal;
    this.#reserve = parts.reserve;
  }

  /** Adds the verbs of a store. */
  learn(verbs: Verbs): void {
    this.#verbs = { ...this.#verbs, ...verbs };
  }

  /** A write that a client asked for: refused when the queue of calls is full. */
  call<T>(verb: string, args: readonly unknown[], bytes = 0): Promise<T> {
    const isFull = this.#isFull(limits.queuedCallsMax, limits.queuedBytesMax - bytes);
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#queue, verb, args, bytes);
  }

  /** A new job: refused also while the disk is nearly full, so that what there is can still be finished. */
  admit<T>(verb: string, args: readonly unknown[], bytes: number): Promise<T> {
    return this.#reserve.hasRoom() ? this.call(verb, args, bytes) : Promise.reject(storageFull());
  }

  /** A worker's word, or our own: refused last. */
  word<T>(verb: string, args: readonly unknown[], bytes = 0): Promise<T> {
    const isFull = this.#isFull(2 * limits.queuedCallsMax, 2 * limits.queuedBytesMax - bytes);
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#words, verb, args, bytes);
  }

  /** Writes what is queued, then takes no more. */
  async close(): Promise<void> {
    while (this.#length > 0) this.#turn();
    this.#closed = true;
  }

  get #length(): number {
    return this.#words.length + this.#queue.length;
  }

  #isFull(callsMax: number, bytesMax: number): boolean {
    return this.#length >= callsMax || this.#queuedBytes > bytesMax;
  }

  #enqueue<T>(queue: Call[], verb: string, args: readonly unknown[], bytes: number): Promise<T> {
    if (this.#closed) return Promise.reject(busy());
    return new Promise<T>((resolve, reject) => {
      queue.push({ verb, args, bytes, resolve: resolve as (value: unknown) => void, reject });
      this.#queuedBytes += bytes;
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
    const group = this.#nextGroup();
    if (group.length === 0) return;
    if (this.#length > 0) this.#schedule();
    try {
      this.#run(group);
    } catch (error) {
      if (this.#isFatal(error)) this.#fail(group, error as Error);
      else if (isFull(error) && this.#reserve.release()) this.#again(group);
      else if (group.length === 1) group[0]!.reject(worded(error));
      else for (const call of group) this.#alone(call);
    }
  }

  #nextGroup(): Call[] {
    const group: Call[] = [];
    let bytes = 0;
    for (const queue of [this.#words, this.#queue]) {
      let count = 0;
      for (const call of queue) {
        const isFull = group.length + count >= limits.groupCallsMax || bytes + call.bytes > limits.groupBytesMax;
        if (isFull && group.length + count > 0) break;
        bytes += call.bytes;
        count++;
      }
      group.push(...queue.splice(0, count));
    }
    this.#queuedBytes -= bytes;
    return group;
  }

  #run(group: readonly Call[]): void {
    this.#db.exec("BEGIN IMMEDIATE");
    let results: unknown[];
    try {
      results = group.map((call) => this.#verbs[call.verb]!(...call.args));
      this.#gathered.flush();
      this.#db.exec("COMMIT");
    } catch (error) {
      this.#gathered.discard();
      try {
        this.#db.exec("ROLLBACK");
      } catch {
        // SQLite has rolled back by itself
      }
      throw error;
    }
    group.forEach((call, at) => void call.resolve(results[at]));
  }

  /** The disk is full, and the reserve was given up: what is on its way is finished with it. */
  #again(group: Call[]): void {
    this.#words.unshift(...group);
    for (const call of group) this.#queuedBytes += call.bytes;
    this.#schedule();
  }

  #alone(call: Call): void {
    try {
      this.#run([call]);
    } catch (error) {
      if (this.#isFatal(error)) this.#fail([call], error as Error);
      else call.reject(worded(error));
    }
  }

  /** A failed fsync is never retried: what the disk holds is unknown, so the process ends and a restart reads it anew. */
  #isFatal(error: unknown): boolean {
    return error instanceof Error && /disk I\/O error|disk image is malformed/i.test(error.message);
  }

  #fail(group: readonly Call[], error: Error): void {
    this.#closed = true;
    for (const call of [...group, ...this.#words, ...this.#queue]) call.reject(busy());
    this.#words = [];
    this.#queue = [];
    this.#onFatal(error);
  }
}

const storageFull = () =>
  new Refusal("STORAGE_FULL", "The disk under the data directory is nearly full; free some space and try again.");

const isFull = (error: unknown): boolean =>
  error instanceof Error && /database or disk is full|SQLITE_FULL/i.test(error.message);

const worded = (error: unknown): unknown => (isFull(error) ? storageFull() : error);
