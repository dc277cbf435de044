import { limits } from "../limits.js";

const waiting: (() => void)[] = [];
let bytesLeft: number = limits.lentBytesPerTurn;
let isTurnSet = false;

/**
 * Resolves when `bytes` may be handed to a socket: all large replies together have a budget for each turn of the event
 * loop, so that other requests are served in between.
 */
export function turnFor(bytes: number): Promise<void> | undefined {
  if (!isTurnSet) {
    isTurnSet = true;
    setImmediate(nextTurn);
  }
  if (waiting.length === 0 && bytesLeft > 0) {
    bytesLeft -= bytes;
    return undefined;
  }
  return new Promise((resolve) => {
    waiting.push(() => {
      bytesLeft -= bytes;
      resolve();
    });
  });
}

function nextTurn(): void {
  bytesLeft = limits.lentBytesPerTurn;
  while (bytesLeft > 0 && waiting.length > 0) waiting.shift()?.();
  isTurnSet = waiting.length > 0;
  if (isTurnSet) setImmediate(nextTurn);
}
