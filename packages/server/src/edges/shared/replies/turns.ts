import { limits } from "../../../limits/index.js";

/**
 * A budget of work per turn of the event loop, shared by everyone who spends it, so that other work is served in
 * between.
 */
export class Turns {
  readonly #budget: number;
  readonly #waiting: (() => void)[] = [];
  #left: number;
  #isTurnSet = false;

  constructor(budget: number) {
    this.#budget = budget;
    this.#left = budget;
  }

  /** Resolves when work of this cost may be done; undefined if it may be done now. */
  take(cost: number): Promise<void> | undefined {
    this.#setTurn();
    if (this.#waiting.length === 0 && this.#left > 0) {
      this.#left -= cost;
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        this.#left -= cost;
        resolve();
      });
    });
  }

  /** Counts work already done, whose cost was not known before. */
  spend(cost: number): void {
    this.#setTurn();
    this.#left -= cost;
  }

  #setTurn(): void {
    if (this.#isTurnSet) return;
    this.#isTurnSet = true;
    setImmediate(this.#next);
  }

  readonly #next = (): void => {
    // whatever exceeded one turn's budget is taken from the next ones
    this.#left = Math.min(this.#left + this.#budget, this.#budget);
    while (this.#left > 0 && this.#waiting.length > 0) this.#waiting.shift()?.();
    this.#isTurnSet = this.#waiting.length > 0 || this.#left < this.#budget;
    if (this.#isTurnSet) setImmediate(this.#next);
  };
}

/** For lists and other long replies: bytes of JSON, over all requests. */
export const makeTurns = new Turns(limits.madeBytesPerTurn);
