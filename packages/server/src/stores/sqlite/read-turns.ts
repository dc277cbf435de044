/** The result of a read, and the number of bytes it has read. */
export interface Found<T> {
  readonly value: T;
  readonly bytes: number;
}

/** Makes reads that block the thread take turns: they share a budget of bytes per turn of the event loop. */
export class ReadTurns {
  readonly #bytesPerTurn: number;
  readonly #waiting: (() => void)[] = [];
  #bytesLeft: number;

  constructor(bytesPerTurn: number) {
    this.#bytesPerTurn = bytesPerTurn;
    this.#bytesLeft = bytesPerTurn;
  }

  /** Reads at once if budget is left, otherwise in a later turn, in the order of the calls. */
  run<T>(read: () => Found<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const go = () => {
        try {
          const { value, bytes } = read();
          this.#bytesLeft -= bytes;
          resolve(value);
        } catch (error) {
          reject(error);
        }
      };
      const isOver = this.#bytesLeft <= 0; // the next turn is then scheduled already
      if (isOver) this.#waiting.push(go);
      else this.#go([go]);
    });
  }

  #go(reads: (() => void)[]): void {
    while (this.#bytesLeft > 0 && reads.length > 0) reads.shift()?.();
    if (this.#bytesLeft <= 0) setImmediate(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#bytesLeft = this.#bytesPerTurn;
    this.#go(this.#waiting);
  }
}
