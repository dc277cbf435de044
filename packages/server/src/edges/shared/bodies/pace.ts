import type { Readable } from "node:stream";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

let bytesLeft: number = limits.bodyBytesPerTurn;
let isTurnSet = false;
const waiting: Readable[] = [];

/**
 * Counts bytes of a large body, and pauses it until a later turn once all large bodies have used up this turn's budget.
 */
export function pace(body: Readable, bytes: number): void {
  bytesLeft -= bytes;
  if (!isTurnSet) {
    isTurnSet = true;
    realTime.after(limits.bodyTurnMs, nextTurn);
  }
  if (bytesLeft > 0) return;
  body.pause();
  waiting.push(body);
}

/** Resumes only as many as there is budget for: each brings at least what its socket has ready. */
function nextTurn(): void {
  bytesLeft = limits.bodyBytesPerTurn;
  for (const body of waiting.splice(0, limits.bodyBytesPerTurn / limits.bodyBytesPerRead)) body.resume();
  isTurnSet = waiting.length > 0;
  if (isTurnSet) realTime.after(limits.bodyTurnMs, nextTurn);
}
