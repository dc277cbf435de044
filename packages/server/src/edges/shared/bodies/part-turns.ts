import { limits } from "../../../limits/index.js";

const waiting: (() => void)[] = [];
let partsLeft: number = limits.bodyPartsPerTurn;
let isTurnSet = false;

/** Counts parts of bodies that were parsed in this turn of the event loop. */
export function spendParts(parts: number): void {
  partsLeft -= parts;
  if (isTurnSet) return;
  isTurnSet = true;
  setImmediate(nextTurn);
}

/**
 * Whether a connection may parse on within a body. If not, `goOn` is called in a later turn: all bodies together have a
 * budget of parts for each turn, so that other requests are served in between.
 */
export function mayParse(goOn: () => void): boolean {
  if (partsLeft > 0) return true;
  waiting.push(goOn);
  return false;
}

function nextTurn(): void {
  partsLeft = limits.bodyPartsPerTurn;
  isTurnSet = waiting.length > 0;
  if (isTurnSet) setImmediate(nextTurn);
  for (let left = waiting.length; left > 0 && partsLeft > 0; left--) waiting.shift()?.();
}
