import type { Readable } from "node:stream";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

/** The rate at which bodies of one sort are read, all of them together. */
class Pace {
  readonly #bytesPerTurn: number;
  #bytesLeft: number;
  #isTurnSet = false;
  readonly #waiting: Readable[] = [];

  constructor(bytesPerTurn: number) {
    this.#bytesPerTurn = bytesPerTurn;
    this.#bytesLeft = bytesPerTurn;
  }

  /** Counts bytes of a body, and pauses it until a later turn once this turn's budget is used up. */
  count(body: Readable, bytes: number): void {
    this.#bytesLeft -= bytes;
    this.#setTurn();
    if (this.#bytesLeft > 0) return;
    body.pause();
    this.#waiting.push(body);
  }

  #setTurn(): void {
    if (this.#isTurnSet) return;
    this.#isTurnSet = true;
    realTime.after(limits.bodyTurnMs, () => this.#nextTurn());
  }

  /** Resumes only as many as there is budget for: each brings at least what its socket has ready. */
  #nextTurn(): void {
    this.#bytesLeft = this.#bytesPerTurn;
    for (const body of this.#waiting.splice(0, this.#bytesPerTurn / limits.bodyBytesPerRead)) body.resume();
    this.#isTurnSet = false;
    if (this.#waiting.length > 0) this.#setTurn();
  }
}

/** Large bodies that are read. */
export const readPace = new Pace(limits.bodyBytesPerTurn);
/** The rest of refused ones, for whose sake nobody else should wait. */
export const discardPace = new Pace(limits.discardedBytesPerTurn);
