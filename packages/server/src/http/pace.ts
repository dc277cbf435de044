import { limits } from "../limits.js";

let bytesLeft: number = limits.bodyBytesPerTurn;
const queue: (() => void)[] = [];
let isTurnSet = false;

/** Calls `go` at once, or in a later turn where the large bodies of all connections have had their bytes of this one. */
export function paced(bytes: number, go: () => void): void {
  bytesLeft -= bytes;
  if (!isTurnSet) {
    isTurnSet = true;
    setTimeout(nextTurn, limits.bodyTurnMs);
  }
  if (bytesLeft >= 0) go();
  else queue.push(go);
}

function nextTurn(): void {
  isTurnSet = false;
  bytesLeft = limits.bodyBytesPerTurn;
  for (const go of queue.splice(0)) go();
}
