import { limits } from "../../limits.js";

let running = 0;
const waiting: (() => void)[] = [];

/** Makes a page of a log when it is its turn: each holds all its lines in memory, so only a few are made at once. */
export async function inTurn<T>(make: () => Promise<T>): Promise<T> {
  if (running >= limits.logReadsMax) await new Promise<void>((go) => waiting.push(go));
  else running++;
  try {
    return await make();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running--;
  }
}
