import { limits } from "../../limits/index.js";

/**
 * How long no server has been there. Time in which this process did not run is not time in which nobody came: the machine
 * slept, or it was stopped. `now` is a steady clock's, in milliseconds.
 */
export class Away {
  #since: number;
  #lastLook: number;

  constructor(now: number) {
    this.#since = now;
    this.#lastLook = now;
  }

  /** The last server has gone. */
  begin(now: number): void {
    this.#since = now;
  }

  /** How long that is, looked at a few times a second, whether a server is there or not. */
  look(now: number): number {
    const gap = now - this.#lastLook;
    this.#lastLook = now;
    if (gap > limits.clockGapMs) this.#since += gap;
    return now - this.#since;
  }
}
