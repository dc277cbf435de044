import { busy, Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import type { DiskReserve } from "../disk/disk-reserve.js";
import type { TextPiece } from "../texts/stored-texts.js";
import { CallQueue, isLarge, type Waiting } from "./call-queue.js";
import type { Outcome, Write } from "./transactions.js";

interface Call extends Write, Waiting<Call> {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The size and order of a call, for the writer. */
export interface CallSize {
  /** The approximate number of bytes it carries, with its pieces. */
  readonly bytes?: number;
  /** Calls of one endpoint keep their order. */
  readonly endpointNo?: number;
  /** The pieces of its large texts. */
  readonly pieces?: readonly TextPiece[];
}

export interface GroupWriterParts {
  /**
   * Runs a group of about this many bytes in one transaction; resolves when it is on disk. Rejects if the disk has
   * failed.
   */
  readonly send: (group: readonly Write[], bytes: number) => Outcome[] | Promise<Outcome[]>;
  /**
   * Checkpoints the log while groups go on; false if a reader held back a part of it. Rejects if the disk has failed.
   */
  readonly checkpoint?: () => Promise<boolean>;
  readonly onFatal: (error: Error) => void;
  readonly reserve: Pick<DiskReserve, "hasRoom">;
}

/**
 * Gathers writes into groups: all that came since the last turn of the event loop, or while two groups are in flight.
 * A promise resolves when its group is on disk. Large calls are in groups of their own, one in flight at a time, and
 * none during the checkpoint of a large log. The pieces of large texts go in such groups before their calls, so that a
 * small call waits for at most `groupBytesMax`. One group of small calls may go between two large ones.
 */
export class GroupWriter {
  readonly #parts: GroupWriterParts;
  /** Workers' reports and our own writes go first. */
  readonly #words = new CallQueue<Call>();
  readonly #queue = new CallQueue<Call>();
  #onTheWay = 0;
  #largeOnTheWay = false;
  #smallHasPassed = false;
  /** Bytes in the log since its last checkpoint. */
  #logBytes = 0;
  #checkpointing = false;
  #scheduled = false;
  #closed = false;
  #idle: (() => void) | undefined;
  /** Texts in pieces whose calls have ended, until those without a row are known to be deleted. */
  readonly #ended = new Set<number>();

  constructor(parts: GroupWriterParts) {
    this.#parts = parts;
  }

  /** A write that a client asked for: refused if the queue of calls is full. */
  call<T>(verb: string, args: readonly unknown[], size: CallSize = {}): Promise<T> {
    const isFull = this.#isFull(limits.queuedCallsMax, this.#queue, limits.queuedBytesMax - (size.bytes ?? 0));
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#queue, verb, args, size);
  }

  /** A new job: also refused while the disk is nearly full, so that existing jobs can still be finished. */
  admit<T>(verb: string, args: readonly unknown[], size: CallSize): Promise<T> {
    return this.#parts.reserve.hasRoom() ? this.call(verb, args, size) : Promise.reject(storageFull());
  }

  /** A worker's report, or a write of our own: refused last. */
  word<T>(verb: string, args: readonly unknown[], size: CallSize = {}): Promise<T> {
    const isFull = this.#isFull(2 * limits.queuedCallsMax, this.#words, 2 * limits.queuedBytesMax - (size.bytes ?? 0));
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#words, verb, args, size);
  }

  /**
   * A write that does not overtake earlier calls of clients for its endpoint: a take finds the jobs submitted so far.
   */
  follow<T>(verb: string, args: readonly unknown[], endpointNo: number): Promise<T> {
    const isFull = this.#isFull(2 * limits.queuedCallsMax, this.#queue, 2 * limits.queuedBytesMax);
    return isFull ? Promise.reject(busy()) : this.#enqueue(this.#queue, verb, args, { endpointNo });
  }

  /** Writes what is queued and accepts no more. */
  async close(): Promise<void> {
    if (!this.#isIdle) await new Promise<void>((idle) => (this.#idle = idle));
    this.#closed = true;
  }

  get #length(): number {
    return this.#words.length + this.#queue.length;
  }

  get #isIdle(): boolean {
    return this.#length === 0 && this.#onTheWay === 0 && !this.#checkpointing;
  }

  /** Bytes are counted separately: large results that wait are no reason to refuse a client. */
  #isFull(callsMax: number, queue: CallQueue<Call>, bytesMax: number): boolean {
    return this.#length >= callsMax || queue.bytes > bytesMax;
  }

  #enqueue<T>(queue: CallQueue<Call>, verb: string, args: readonly unknown[], size: CallSize): Promise<T> {
    if (this.#closed) return Promise.reject(busy());
    const { bytes = 0, endpointNo, pieces = [] } = size;
    return new Promise<T>((resolve, reject) => {
      const call: Call = { verb, args, bytes, endpointNo, resolve: resolve as (value: unknown) => void, reject };
      queue.push(pieces.length === 0 ? call : this.#withPieces(queue, call, pieces));
      this.#schedule();
    });
  }

  /**
   * Queues the call after the writes of its pieces. However it ends, no piece remains without a row that refers to it.
   */
  #withPieces(queue: CallQueue<Call>, call: Call, pieces: readonly TextPiece[]): Call {
    const { endpointNo } = call;
    const drop = () => this.dropStaged(pieces.map(({ textNo }) => textNo));
    const waiting = { left: [] as Call[], onTheWay: 0 };
    const whole: Call = {
      ...call,
      bytes: Math.max(limits.largeCallBytes, call.bytes - pieces.reduce((sum, { bytes }) => sum + bytes.length, 0)),
      pieces: waiting,
      resolve(value) {
        call.resolve(value);
        drop();
      },
      reject(error) {
        call.reject(error);
        drop();
      },
    };
    const pieceOf = ({ textNo, n, bytes }: TextPiece): Call => ({
      verb: "storePiece",
      // copied when sent: memory transferred to the writing thread must hold nothing else
      get args() {
        return [{ textNo, n, bytes: Uint8Array.from(bytes) }];
      },
      bytes: Math.max(limits.largeCallBytes, bytes.length),
      endpointNo,
      resolve: () => void waiting.onTheWay--,
      reject: (error) => {
        if (queue.remove(whole)) whole.reject(error);
      },
    });
    waiting.left.push(...pieces.map(pieceOf));
    return whole;
  }

  /** Of these texts in pieces, deletes all that no row refers to. */
  dropStaged(textNos: readonly number[]): void {
    if (textNos.length === 0) return;
    for (const textNo of textNos) this.#ended.add(textNo);
    const ended = [...this.#ended];
    const forget = () => {
      for (const textNo of ended) this.#ended.delete(textNo);
    };
    // if this fails, they are dropped with the next ones, or when the database is opened again
    this.word("dropStaged", [ended]).then(forget, () => {});
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
      if (this.#isIdle) this.#idle?.();
      return;
    }
    this.#onTheWay++;
    if (this.#length > 0) this.#schedule();
    const bytes = group.reduce((sum, call) => sum + call.bytes, 0);
    try {
      const sent = this.#parts.send(
        group.map(({ verb, args }) => ({ verb, args })),
        bytes,
      );
      if (Array.isArray(sent)) this.#settle(group, bytes, sent);
      else
        sent.then(
          (outcomes) => this.#settle(group, bytes, outcomes),
          (error) => this.#fail(group, error),
        );
    } catch (error) {
      this.#fail(group, error as Error);
    }
  }

  /** Small calls first, then the large calls that they overtook. */
  #nextGroup(): Call[] {
    const mayBeLarge = this.#hasLarge && !this.#largeOnTheWay && !this.#checkpointing;
    const first = mayBeLarge && this.#smallHasPassed ? this.#largeGroup() : this.#smallGroup();
    if (first.length > 0 || !mayBeLarge) return first;
    return this.#smallHasPassed ? this.#smallGroup() : this.#largeGroup();
  }

  get #hasLarge(): boolean {
    return this.#words.hasLarge || this.#queue.hasLarge;
  }

  #smallGroup(): Call[] {
    const group: Call[] = [];
    this.#words.moveSmall(group);
    this.#queue.moveSmall(group);
    if (group.length > 0) this.#smallHasPassed = true;
    return group;
  }

  #largeGroup(): Call[] {
    const group: Call[] = [];
    // workers' results must not delay clients' jobs forever
    this.#words.moveLarge(group, this.#queue.hasLarge ? limits.groupBytesMax / 2 : limits.groupBytesMax);
    const bytes = group.reduce((sum, call) => sum + call.bytes, 0);
    this.#queue.moveLarge(group, limits.groupBytesMax - bytes);
    if (group.length > 0) this.#largeOnTheWay = true;
    return group;
  }

  #settle(group: readonly Call[], bytes: number, outcomes: readonly Outcome[]): void {
    this.#onTheWay--;
    if (isLarge(group[0] as Call)) {
      this.#largeOnTheWay = false;
      this.#smallHasPassed = false;
    }
    group.forEach((call, at) => {
      const outcome = outcomes[at] as Outcome;
      if (outcome.ok) call.resolve(outcome.value ?? undefined);
      else call.reject(outcome.isFull ? storageFull() : outcome.isLocked ? busy() : new Error(outcome.message));
    });
    this.#logBytes += bytes;
    if (this.#logBytes >= limits.checkpointBytes) void this.#checkpoint();
    this.#goOn();
  }

  /** Triggered by bytes: checkpointing a log of 400 MB at once delays every write by a second. */
  async #checkpoint(): Promise<void> {
    if (!this.#parts.checkpoint || this.#checkpointing || this.#closed) return;
    this.#checkpointing = true;
    this.#logBytes = 0;
    try {
      const isBrought = await this.#parts.checkpoint();
      if (!isBrought) this.#logBytes = limits.checkpointBytes; // retried with the next group
      this.#checkpointing = false;
      this.#goOn();
    } catch (error) {
      this.#checkpointing = false;
      this.#fail([], error as Error);
    }
  }

  #goOn(): void {
    if (this.#length > 0) this.#schedule();
    else if (this.#isIdle) this.#idle?.();
  }

  #fail(group: readonly Call[], error: Error): void {
    if (group.length > 0) this.#onTheWay--;
    this.#closed = true;
    for (const call of [...group, ...this.#words.clear(), ...this.#queue.clear()]) call.reject(busy());
    this.#idle?.();
    this.#parts.onFatal(error);
  }
}

const storageFull = () =>
  new Refusal("STORAGE_FULL", "The disk under the data directory is nearly full; free some space and try again.");
