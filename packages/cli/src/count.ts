import { InvalidArgumentError } from "commander";

/** An option's whole number from 1 on. */
export function count(given: string): number {
  if (!/^[1-9]\d{0,5}$/.test(given)) throw new InvalidArgumentError("Write a whole number from 1 on.");
  return Number(given);
}

/** An option's whole number of seconds, which may be 0. */
export function seconds(given: string): number {
  if (!/^\d{1,9}$/.test(given)) throw new InvalidArgumentError("Write a whole number of seconds.");
  return Number(given);
}
