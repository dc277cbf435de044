/** What a cache has yet to read: rows with these numbers, or all of them. */
export type Unread = ReadonlySet<number> | "all";

/**
 * Decides between what this server has written and what it reads. A read that began before a write was over may not have
 * seen it, and must not replace it in memory. Rows are read again once they were changed, and all of them after a write
 * of ours has failed.
 */
export class Writes {
  readonly #isShared: boolean;
  readonly #onChange: (() => void) | undefined;
  readonly #writes = new Map<object, { underWay: number; lastTurn: number }>();
  readonly #unread = new WeakMap<object, Unread>();
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

  /** What `kept` has yet to read; undefined if nothing. */
  unread(kept: object): Unread | undefined {
    const unread = this.#unread.get(kept) ?? "all";
    return unread === "all" || unread.size > 0 ? unread : undefined;
  }

  /** Notes rows of `kept` that were changed. */
  note(kept: object, changed: Iterable<number> | "all"): void {
    const before = this.#unread.get(kept) ?? "all";
    this.#unread.set(kept, before === "all" || changed === "all" ? "all" : new Set([...before, ...changed]));
  }

  /** `kept` holds what was read. */
  wasRead(kept: object, read: Unread): void {
    const unread = this.#unread.get(kept) ?? "all";
    if (read === "all") this.#unread.set(kept, new Set());
    else if (unread !== "all") this.#unread.set(kept, new Set([...unread].filter((no) => !read.has(no))));
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
      this.#unread.set(kept, "all"); // memory may hold what was not stored
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
