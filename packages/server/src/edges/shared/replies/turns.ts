import { limits } from "../../../limits/index.js";

/** A budget of work for each turn of the event loop, shared by everyone who spends it: others are served in between. */
export class Turns {
  readonly #budget: number;
  readonly #waiting: (() => void)[] = [];
  #left: number;
  #isTurnSet = false;

  constructor(budget: number) {
    this.#budget = budget;
    this.#left = budget;
  }

  /** Resolves when work of this cost may be done; undefined where that is now. */
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

  /** Counts work that is done already: its cost was not known before. */
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
    // what was spent beyond one turn's budget is paid by the next turns
    this.#left = Math.min(this.#left + this.#budget, this.#budget);
    while (this.#left > 0 && this.#waiting.length > 0) this.#waiting.shift()?.();
    this.#isTurnSet = this.#waiting.length > 0 || this.#left < this.#budget;
    if (this.#isTurnSet) setImmediate(this.#next);
  };
}

/** For making lists and other long answers: bytes of their JSON, whoever asks. */
export const makeTurns = new Turns(limits.madeBytesPerTurn);
