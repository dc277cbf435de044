import { sql as raw } from "kysely";

/** Which rows, by their numbers. */
export interface Numbers {
  readonly fromNo?: number | undefined;
  readonly beforeNo?: number | undefined;
}

/**
 * SQL condition for the rows in which these columns have these values, to be read in the order of `columns` and `no`,
 * descending. It names a range of an index over them, compared as a whole: with `owner = …` and `ORDER BY no` a database
 * may choose to walk through everybody's rows, newest first, until it has found enough, which may be never.
 */
export function rangeOf(
  columns: readonly string[],
  values: readonly unknown[],
  { fromNo, beforeNo }: Numbers = {},
  no = "no",
) {
  const row = raw`(${raw.join([...columns, no].map((name) => raw.ref(name)))})`;
  const end = (number: number) => raw`(${raw.join([...values, number])})`;
  return raw<boolean>`${row} >= ${end(fromNo ?? 0)} AND ${row} < ${end(beforeNo ?? Number.MAX_SAFE_INTEGER)}`;
}
