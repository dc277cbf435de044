import { invalid } from "../../errors.js";

/** Parses `wait` in milliseconds and clamps it to its bounds: clients ask for more than they can have. */
export function readClamped(wait: string | undefined, fallback: number, min: number, max: number): number {
  if (wait === undefined) return fallback;
  if (!/^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(wait)) throw invalid("'wait' must be a number of milliseconds.");
  return Math.min(Math.max(Number(wait), min), max);
}
