/** Everything that happens without time passing: store calls in flight, and calls that are delayed by some turns. */
export class Turns {
  #inFlight = 0;
  readonly #held: { left: number; readonly go: () => void }[] = [];
  /**
   * More turns than this at one moment, and more real time, mean that something never comes to rest. Turns alone do not:
   * a store's call whose thread was stalled by the machine rests for some milliseconds, in which thousands pass.
   */
  static readonly max = 5_000;
  static readonly maxRealMs = 5_000;

  /** Counts a call until it has ended. */
  async during<T>(call: Promise<T>): Promise<T> {
    this.#inFlight++;
    try {
      return await call;
    } finally {
      this.#inFlight--;
    }
  }

  /** Resolves some turns later. */
  later(turns: number): Promise<void> {
    return turns === 0 ? Promise.resolve() : new Promise((go) => void this.#held.push({ left: turns, go }));
  }

  /** Runs everything that can run; false if it does not come to rest. */
  async settle(): Promise<boolean> {
    const beganAt = performance.now();
    for (let turn = 0; turn < Turns.max || performance.now() - beganAt < Turns.maxRealMs; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#inFlight === 0 && this.#held.length === 0) return true;
      for (const held of this.#held.splice(0)) {
        if (--held.left > 0) this.#held.push(held);
        else held.go();
      }
    }
    return false;
  }
}
