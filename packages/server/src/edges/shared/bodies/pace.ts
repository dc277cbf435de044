import type { Readable } from "node:stream";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

type Body = Readable & { readonly socket?: { readonly destroyed: boolean } };

/** What is known of a body that is read. */
export interface Reading {
  readonly ownerNo: number;
  /** The bytes still to come; infinite if its length was not announced. */
  readonly left: number;
  /** How its owner's bodies may be read on now. */
  readonly manner: "freely" | "one by one" | "not now";
}

interface Waiting {
  readonly body: Body;
  readonly reading: Reading | undefined;
  readonly left: number;
}

/**
 * The rate at which bodies of one sort are read, all of them together. Owners take turns, however many bodies one of them
 * sends. Of an owner's bodies the one that is nearest to its end is read on first: bodies that end one after another take
 * less memory than bodies that grow side by side, and small ones do not wait for large ones.
 */
class Pace {
  readonly #bytesPerTurn: number;
  #bytesLeft: number;
  #isTurnSet = false;
  /** By owner, in the order of their turns. */
  readonly #waiting = new Map<number, Waiting[]>();
  /** The last body of each owner that was read on in this turn. */
  #readOn = new Map<number, Body>();

  constructor(bytesPerTurn: number) {
    this.#bytesPerTurn = bytesPerTurn;
    this.#bytesLeft = bytesPerTurn;
  }

  /** Counts bytes of a body, and pauses it until a later turn if this turn's budget is used up, or others go first. */
  count(body: Body, bytes: number, reading?: Reading): void {
    this.#bytesLeft -= bytes;
    this.#setTurn();
    const { ownerNo = 0, manner = "freely" } = reading ?? {};
    const mayGoOn = manner === "freely" || (manner === "one by one" && this.#readOn.get(ownerNo) === body);
    if (this.#bytesLeft > 0 && mayGoOn) return;
    body.pause();
    const waiting = { body, reading, left: reading?.left ?? 0 };
    const line = this.#waiting.get(ownerNo);
    if (line) line.push(waiting);
    else this.#waiting.set(ownerNo, [waiting]);
  }

  #setTurn(): void {
    if (this.#isTurnSet) return;
    this.#isTurnSet = true;
    realTime.after(limits.bodyTurnMs, () => this.#nextTurn());
  }

  /** Resumes only as many bodies as the budget allows, because each brings at least what its socket holds. */
  #nextTurn(): void {
    this.#bytesLeft = this.#bytesPerTurn;
    this.#readOn = new Map();
    let left = this.#bytesPerTurn / limits.bodyBytesPerRead;
    for (let before = left + 1; left > 0 && left < before; ) {
      before = left;
      for (const ownerNo of [...this.#waiting.keys()]) if (left > 0 && this.#goOn(ownerNo)) left--;
    }
    this.#isTurnSet = false;
    if (this.#waiting.size > 0) this.#setTurn();
  }

  /** Reads on the body of an owner that is nearest to its end; false if none may be. */
  #goOn(ownerNo: number): boolean {
    const line = this.#waiting.get(ownerNo) ?? [];
    this.#waiting.delete(ownerNo);
    let at = nearest(line);
    // a body whose client has gone is skipped, and uses no budget
    for (let next = line[at]; next && hasGone(next); next = line[at]) {
      line.splice(at, 1);
      at = nearest(line);
    }
    const manner = line[at]?.reading?.manner ?? "freely";
    const mayGoOn = line.length > 0 && (manner === "freely" || (manner === "one by one" && !this.#readOn.has(ownerNo)));
    const [next] = mayGoOn ? line.splice(at, 1) : [];
    if (line.length > 0) this.#waiting.set(ownerNo, line); // now the last
    if (!next) return false;
    this.#readOn.set(ownerNo, next.body);
    next.body.resume();
    return true;
  }
}

const hasGone = ({ body }: Waiting): boolean => body.destroyed || body.socket?.destroyed === true;

/** The place of the body with the least left; of several, of the one that has waited longest. */
function nearest(line: readonly Waiting[]): number {
  let at = 0;
  for (let n = 1; n < line.length; n++) if ((line[n] as Waiting).left < (line[at] as Waiting).left) at = n;
  return at;
}

/** Large bodies that are read. */
export const readPace = new Pace(limits.bodyBytesPerTurn);
/** The rest of bodies that are only discarded, mostly of refused requests: other requests must not wait for them. */
export const discardPace = new Pace(limits.discardedBytesPerTurn);
