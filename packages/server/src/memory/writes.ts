/**
 * Decides between this server's writes and its reads. A read that began before a write was over may not have seen it,
 * and must not replace it in memory. A table is read again once its revision has changed or a write of ours has
 * failed.
 */
export class Writes {
  readonly #isShared: boolean;
  readonly #onChange: (() => void) | undefined;
  readonly #writes = new Map<object, { underWay: number; lastTurn: number }>();
  /** The revision of the table from which each cache was last read. */
  readonly #revisions = new WeakMap<object, string>();
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

  /** Ends the read of that turn: writes before it are forgotten. */
  endRead(turn: number): void {
    for (const kept of [...this.#writes.keys()]) if (!this.isNewer(kept, turn)) this.#writes.delete(kept);
  }

  /** Whether `kept` may be newer in memory than what a read that began in this turn has found. */
  isNewer(kept: object, turn: number): boolean {
    const writes = this.#writes.get(kept);
    return writes !== undefined && (writes.underWay > 0 || writes.lastTurn >= turn);
  }

  /** Whether `kept` was last read at this revision of its table. */
  isCurrent(kept: object, revision: string | undefined): boolean {
    return revision !== undefined && this.#revisions.get(kept) === revision;
  }

  /** `kept` was read at this revision of its table; undefined if the table has none. */
  wasRead(kept: object, revision: string | undefined): void {
    if (revision !== undefined) this.#revisions.set(kept, revision);
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
      this.#revisions.delete(kept); // memory may hold what was not stored
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
