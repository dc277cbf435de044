/**
 * Does work one at a time, or `most` at a time, in the order in which it came; but owners take turns, however much one
 * of them has waiting.
 */
export class FairLine {
  readonly #waiting = new Map<number, (() => void)[]>(); // by owner, in the order of their turns
  #free: number;

  constructor(most = 1) {
    this.#free = most;
  }

  /** How much of an owner's work waits. */
  waitingOf = (ownerNo: number): number => this.#waiting.get(ownerNo)?.length ?? 0;

  async do<T>(ownerNo: number, work: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((begin) => this.#wait(ownerNo, begin));
    else this.#free--;
    try {
      return await work();
    } finally {
      this.#beginNext();
    }
  }

  #wait(ownerNo: number, begin: () => void): void {
    const line = this.#waiting.get(ownerNo);
    if (line) line.push(begin);
    else this.#waiting.set(ownerNo, [begin]);
  }

  #beginNext(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free++;
      return;
    }
    const [ownerNo, line] = next;
    const begin = line.shift() as () => void;
    this.#waiting.delete(ownerNo);
    if (line.length > 0) this.#waiting.set(ownerNo, line); // now the last
    begin();
  }
}
