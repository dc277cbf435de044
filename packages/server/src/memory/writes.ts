/**
 * Protects what this server writes from its own reads: a read that began before a write was over may not have seen it,
 * and must not replace it in memory.
 */
export class Writes {
  readonly #isShared: boolean;
  readonly #onChange: (() => void) | undefined;
  readonly #writes = new Map<object, { underWay: number; lastTurn: number }>();
  /** What a write has failed for: memory may hold what was not stored. */
  readonly #failed = new WeakSet<object>();
  /** Counts reads and writes. */
  #turns = 0;

  /** `onChange` is called when something was written that other servers hold in memory, too. */
  constructor(isShared: boolean, onChange: (() => void) | undefined) {
    this.#isShared = isShared;
    this.#onChange = onChange;
  }

  /** How many entries there are: what is being written, and what was written since the last read began. */
  get size(): number {
    return this.#writes.size;
  }

  /** Begins a read, and returns its turn. */
  beginRead(): number {
    return ++this.#turns;
  }

  /** Ends the read of that turn: what was written before it is forgotten. */
  endRead(turn: number): void {
    for (const kept of [...this.#writes.keys()]) if (!this.isNewer(kept, turn)) this.#writes.delete(kept);
  }

  /** Whether what is kept in memory may be newer than what a read found that began in this turn. */
  isNewer(kept: object, turn: number): boolean {
    const writes = this.#writes.get(kept);
    return writes !== undefined && (writes.underWay > 0 || writes.lastTurn >= turn);
  }

  /** Whether a write has failed since what is kept as `kept` was last read. */
  hasFailed = (kept: object): boolean => this.#failed.has(kept);

  /** What is kept as `kept` was read again. */
  wasRead(kept: object): void {
    this.#failed.delete(kept);
  }

  /** Writes something that is kept in memory as `kept`. */
  async during<T>(kept: object, write: () => Promise<T>): Promise<T> {
    if (!this.#isShared) return write();
    const writes = this.#writes.get(kept) ?? { underWay: 0, lastTurn: 0 };
    this.#writes.set(kept, writes);
    writes.underWay++;
    try {
      return await write();
    } catch (error) {
      this.#failed.add(kept);
      throw error;
    } finally {
      writes.underWay--;
      writes.lastTurn = ++this.#turns;
      this.#onChange?.();
    }
  }

  /** Something new was written, and is kept as `kept`. */
  wrote(kept: object): void {
    if (this.#isShared) this.#writes.set(kept, { underWay: 0, lastTurn: ++this.#turns });
  }
}
