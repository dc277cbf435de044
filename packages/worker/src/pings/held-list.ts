import { limits } from "../limits.js";

/** Indexes of the numbers at the start of the shared memory; the length of the id in each slot follows them. */
const at = { version: 0, asking: 1, answered: 2, lengths: 3 } as const;
const idsStart = (at.lengths + limits.jobsHeldMax) * Int32Array.BYTES_PER_ELEMENT;

/**
 * The ids of the jobs that a worker holds, in memory shared between its threads: the main thread writes, the pinging
 * thread reads. Unlike messages this costs a job next to nothing, and wakes no thread.
 */
export class HeldList {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Int32Array;
  readonly #bytes: Buffer;
  readonly #slots = new Map<string, number>();
  readonly #free = Array.from({ length: limits.jobsHeldMax }, (_, slot) => slot);

  constructor(memory = new SharedArrayBuffer(idsStart + limits.jobsHeldMax * limits.sharedIdMaxBytes)) {
    this.memory = memory;
    this.#numbers = new Int32Array(memory, 0, at.lengths + limits.jobsHeldMax);
    this.#bytes = Buffer.from(memory, idsStart);
  }

  /** Adds an id; false if there is no room for it. */
  add(id: string): boolean {
    const slot = Buffer.byteLength(id) <= limits.sharedIdMaxBytes ? this.#free.pop() : undefined;
    if (slot === undefined) return false;
    this.#slots.set(id, slot);
    this.#change(slot, () => this.#bytes.write(id, slot * limits.sharedIdMaxBytes));
    return true;
  }

  delete(id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.#slots.delete(id);
    this.#change(slot, () => 0);
    this.#free.push(slot);
  }

  /** The present list. If it changes during the read, it is read again. */
  ids(): string[] {
    for (;;) {
      const version = Atomics.load(this.#numbers, at.version);
      const ids = this.#read();
      if (version % 2 === 0 && Atomics.load(this.#numbers, at.version) === version) return ids;
    }
  }

  /** True while a take is open: it may have brought a job that the main thread, being busy, has not read yet. */
  get isAsking(): boolean {
    return Atomics.load(this.#numbers, at.asking) === 1;
  }

  set isAsking(isAsking: boolean) {
    Atomics.store(this.#numbers, at.asking, isAsking ? 1 : 0);
  }

  /** The last question of the pinging thread that the main thread has answered. */
  get answered(): number {
    return Atomics.load(this.#numbers, at.answered);
  }

  set answered(question: number) {
    Atomics.store(this.#numbers, at.answered, question);
  }

  /** The version is odd while a change is in progress. */
  #change(slot: number, write: () => number): void {
    Atomics.add(this.#numbers, at.version, 1);
    Atomics.store(this.#numbers, at.lengths + slot, write());
    Atomics.add(this.#numbers, at.version, 1);
  }

  #read(): string[] {
    const ids: string[] = [];
    for (let slot = limits.jobsHeldMax - 1; slot >= 0; slot -= 1) {
      const length = Atomics.load(this.#numbers, at.lengths + slot);
      const start = slot * limits.sharedIdMaxBytes;
      if (length > 0) ids.push(this.#bytes.toString("utf8", start, start + length));
    }
    return ids;
  }
}
