import type { Readable } from "node:stream";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

type Body = Readable & { readonly socket?: { readonly destroyed: boolean } };

/** The rate at which bodies of one sort are read, all of them together. */
class Pace {
  readonly #bytesPerTurn: number;
  #bytesLeft: number;
  #isTurnSet = false;
  readonly #waiting: Body[] = [];

  constructor(bytesPerTurn: number) {
    this.#bytesPerTurn = bytesPerTurn;
    this.#bytesLeft = bytesPerTurn;
  }

  /** Counts bytes of a body, and pauses it until a later turn once this turn's budget is used up. */
  count(body: Body, bytes: number): void {
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

  /**
   * Resumes only as many bodies as the budget allows, because each brings at least what its socket holds. Bodies whose
   * client has gone are skipped and use no budget.
   */
  #nextTurn(): void {
    this.#bytesLeft = this.#bytesPerTurn;
    for (let left = this.#bytesPerTurn / limits.bodyBytesPerRead; left > 0 && this.#waiting.length > 0; ) {
      const body = this.#waiting.shift() as Body;
      if (body.destroyed || body.socket?.destroyed) continue;
      body.resume();
      left--;
    }
    this.#isTurnSet = false;
    if (this.#waiting.length > 0) this.#setTurn();
  }
}

/** Large bodies that are read. */
export const readPace = new Pace(limits.bodyBytesPerTurn);
/** The rest of bodies that are only discarded, mostly of refused requests: other requests must not wait for them. */
export const discardPace = new Pace(limits.discardedBytesPerTurn);
