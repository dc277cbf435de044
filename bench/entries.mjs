// A row's result, and whether it meets its bounds.
import { median } from "./rounds.mjs";

/** The spelling of the databases' names. */
export const titles = { sqlite: "SQLite", postgres: "PostgreSQL" };

/**
 * One line of the table. `ours` and `theirs` are the figures of the rounds. `figure` is the value that the bounds apply
 * to: the ratio of medians unless it is given as `{ value, unit }`. `least` and `most` are bounds: `{ must, aim }`.
 */
export function entry({ database, what, unit, ours, theirs, against, figure, least, most, note }) {
  const shown = figure ?? (theirs === undefined ? undefined : { value: median(ours) / median(theirs), unit: "×" });
  return {
    database,
    what,
    unit,
    ours,
    theirs,
    against,
    figure: shown,
    bounds: least ?? most,
    isLeast: least !== undefined,
    note,
  };
}

/** A line for a value that could not be measured. */
export const unmeasured = (database, what, why) => ({ database, what, why });

/** "met", "must" (the aim is missed), "missed", or undefined without a bound. */
export function verdict({ figure, bounds, isLeast }) {
  if (bounds === undefined) return undefined;
  const holds = (bound) => (isLeast ? figure.value >= bound : figure.value <= bound);
  if (!holds(bounds.must)) return "missed";
  return bounds.aim === undefined || holds(bounds.aim) ? "met" : "must";
}
