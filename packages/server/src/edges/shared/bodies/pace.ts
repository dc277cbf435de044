import type { Readable } from "node:stream";
import { limits } from "../../../limits/index.js";

let bytesLeft: number = limits.bodyBytesPerTurn;
let isTurnSet = false;
const waiting: Readable[] = [];

/** Counts what came of a large body, and holds it back to a later turn where all of them together have had their bytes of this one. */
export function pace(body: Readable, bytes: number): void {
  bytesLeft -= bytes;
  if (!isTurnSet) {
    isTurnSet = true;
    setTimeout(nextTurn, limits.bodyTurnMs);
  }
  if (bytesLeft > 0) return;
  body.pause();
  waiting.push(body);
}

/** Only as many go on as there are bytes for: each brings at least what its socket has ready. */
function nextTurn(): void {
  bytesLeft = limits.bodyBytesPerTurn;
  for (const body of waiting.splice(0, limits.bodyBytesPerTurn / limits.bodyBytesPerRead)) body.resume();
  isTurnSet = waiting.length > 0;
  if (isTurnSet) setTimeout(nextTurn, limits.bodyTurnMs);
}
