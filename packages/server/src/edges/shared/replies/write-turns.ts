import { limits } from "../../../limits/index.js";

const waiting: [bytes: number, begin: () => void][] = [];
let bytesLeft: number = limits.lentBytesPerTurn;
let isTurnSet = false;

/**
 * Resolves when `bytes` of a large reply may be handed to a socket; undefined if they may now. All sockets share a budget
 * of bytes per turn of the event loop, because the kernel's copying takes time however quickly we hand bytes over.
 */
export function turnFor(bytes: number): Promise<void> | undefined {
  setTurn();
  if (waiting.length === 0 && bytesLeft > 0) {
    bytesLeft -= bytes;
    return undefined;
  }
  return new Promise((resolve) => waiting.push([bytes, resolve]));
}

function setTurn(): void {
  if (!isTurnSet) setImmediate(nextTurn);
  isTurnSet = true;
}

function nextTurn(): void {
  // whatever exceeded one turn's budget is taken from the next ones
  bytesLeft = Math.min(bytesLeft + limits.lentBytesPerTurn, limits.lentBytesPerTurn);
  isTurnSet = false;
  while (bytesLeft > 0) {
    const [bytes, begin] = waiting.shift() ?? [0];
    if (!begin) break;
    bytesLeft -= bytes;
    begin();
  }
  if (waiting.length > 0 || bytesLeft < limits.lentBytesPerTurn) setTurn();
}
