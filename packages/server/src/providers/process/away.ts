import { limits } from "../../limits/index.js";

/**
 * Measures how long no server has been connected. Time in which this process did not run, because it was stopped or the
 * machine slept, does not count. `now` is a steady clock's, in milliseconds.
 */
export class Away {
  #since: number;
  #lastLook: number;

  constructor(now: number) {
    this.#since = now;
    this.#lastLook = now;
  }

  /** The last server has disconnected. */
  begin(now: number): void {
    this.#since = now;
  }

  /** How long ago that was. Must be called a few times a second, with or without a server. */
  look(now: number): number {
    const gap = now - this.#lastLook;
    this.#lastLook = now;
    if (gap > limits.clockGapMs) this.#since += gap;
    return now - this.#since;
  }
}
