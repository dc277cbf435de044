import { busy, Refusal } from "../../errors.js";
import { limits } from "../../limits.js";
import type { DiskReserve } from "./disk-reserve.js";
import type { Outcome, Write } from "./transactions.js";

interface Call extends Write {
  /** About how many bytes it carries. */
  readonly bytes: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupWriterParts {
  /** Runs a group of about so many bytes in one transaction; it is on disk when this resolves. Rejects where the disk has failed. */
  readonly send: (group: readonly Write[], bytes: number) => Outcome[] | Promise<Outcome[]>;
  readonly onFatal: (error: Error) => void;
  readonly reserve: Pick<DiskReserve, "hasRoom">;
}

/**
 * Gathers writes into groups: what has come since the last turn of the event loop, and while two groups are on their way.
 * A promise resolves when its group is on disk.
 */
export class GroupWriter {
  readonly #parts: GroupWriterParts;
  /** Workers' words and our own go first. */
  #words: Call[] = [];
  #queue: Call[] = [];
  #queuedBytes = 0;
  #onTheWay = 0;
  #scheduled = false;
  #closed = false;
  #idle: (() => void) | undefined;

  constructor(parts: GroupWriterParts) {
    this.#parts = parts;
  }

  /** A write that a client asked for: refused when the queue of calls is full. */
  call<T>(verb: string, args: readonly unknown[], bytes = 0): Promise<T> {
    const isFull = this.#isFull(limits.queuedCallsMax, limits.queuedBytesMax - bytes);
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#queue, verb, args, bytes);
  }

  /** A new job: refused also while the disk is nearly full, so that what there is can still be finished. */
  admit<T>(verb: string, args: readonly unknown[], bytes: number): Promise<T> {
    return this.#parts.reserve.hasRoom() ? this.call(verb, args, bytes) : Promise.reject(storageFull());
  }

  /** A worker's word, or our own: refused last. */
  word<T>(verb: string, args: readonly unknown[], bytes = 0): Promise<T> {
    const isFull = this.#isFull(2 * limits.queuedCallsMax, 2 * limits.queuedBytesMax - bytes);
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#words, verb, args, bytes);
  }

  /** A word that does not overtake what clients have asked before it: a take finds the jobs submitted until now. */
  follow<T>(verb: string, args: readonly unknown[]): Promise<T> {
    const isFull = this.#isFull(2 * limits.queuedCallsMax, 2 * limits.queuedBytesMax);
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#queue, verb, args, 0);
  }

  /** Writes what is queued, then takes no more. */
  async close(): Promise<void> {
    if (this.#length > 0 || this.#onTheWay > 0) await new Promise<void>((idle) => (this.#idle = idle));
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
    if (this.#scheduled || this.#onTheWay >= limits.groupsOnTheWayMax) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
    const group = this.#nextGroup();
    if (group.length === 0) {
      this.#idle?.();
      return;
    }
    this.#onTheWay++;
    if (this.#length > 0) this.#schedule();
    try {
      const bytes = group.reduce((sum, call) => sum + call.bytes, 0);
      const sent = this.#parts.send(
        group.map(({ verb, args }) => ({ verb, args })),
        bytes,
      );
      if (Array.isArray(sent)) this.#settle(group, sent);
      else
        sent.then(
          (outcomes) => this.#settle(group, outcomes),
          (error) => this.#fail(group, error),
        );
    } catch (error) {
      this.#fail(group, error as Error);
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

  #settle(group: readonly Call[], outcomes: readonly Outcome[]): void {
    this.#onTheWay--;
    group.forEach((call, at) => {
      const outcome = outcomes[at] as Outcome;
      if (outcome.ok) call.resolve(outcome.value ?? undefined);
      else call.reject(outcome.isFull ? storageFull() : outcome.isLocked ? busy() : new Error(outcome.message));
    });
    if (this.#length > 0) this.#schedule();
    else if (this.#onTheWay === 0) this.#idle?.();
  }

  #fail(group: readonly Call[], error: Error): void {
    this.#onTheWay--;
    this.#closed = true;
    for (const call of [...group, ...this.#words, ...this.#queue]) call.reject(busy());
    this.#words = [];
    this.#queue = [];
    this.#idle?.();
    this.#parts.onFatal(error);
  }
}

const storageFull = () =>
  new Refusal("STORAGE_FULL", "The disk under the data directory is nearly full; free some space and try again.");
