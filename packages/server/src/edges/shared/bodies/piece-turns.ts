import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

const waiting: (() => void)[] = [];
let piecesLeft: number = limits.bodyPiecesPerTurn;
let isTurnSet = false;

/** Counts pieces of bodies that were parsed in this turn of the event loop. */
export function spendPieces(pieces: number): void {
  piecesLeft -= pieces;
  if (isTurnSet) return;
  isTurnSet = true;
  setImmediate(nextTurn);
}

/**
 * Whether a connection may parse on within a body. If not, `goOn` is called in a later turn: all bodies together have a
 * budget of pieces and of time for each turn, so that other requests are served in between: a piece may be a single byte,
 * and each of a thousand bodies may have one as large as a slice.
 */
export function mayParse(goOn: () => void): boolean {
  if (piecesLeft > 0) return true;
  waiting.push(goOn);
  return false;
}

function nextTurn(): void {
  piecesLeft = limits.bodyPiecesPerTurn;
  isTurnSet = waiting.length > 0;
  if (isTurnSet) setImmediate(nextTurn);
  const endsAt = realTime.monotonicMs() + limits.bodyTurnMs;
  for (let left = waiting.length; left > 0 && piecesLeft > 0; left--) {
    waiting.shift()?.();
    if (realTime.monotonicMs() >= endsAt) piecesLeft = 0;
  }
}
