import { invalid } from "../../../errors.js";

/** The form of a cursor: a number in base 36 and two check digits. */
export const cursorPattern = "^[0-9a-z]{1,11}-[0-9a-z]{2}$";

/** What a cursor must be, in words. */
export const cursorTitle = "the nextCursor of a reply: leave it out to begin with the newest";

/** The cursor for a place in a list. Its check digits reveal a cursor that was mistyped or cut off. */
export const writeCursor = (place: string): string => `${place}-${check(place)}`;

/** The number in a cursor that a caller gave; undefined if none was. Refuses one that this service did not write. */
export function readCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const [place = "", digits] = new RegExp(cursorPattern).test(cursor) ? cursor.split("-") : [];
  if (digits !== undefined && digits === check(place)) return Number.parseInt(place, 36);
  throw invalid(`'cursor' must be ${cursorTitle}.`);
}

const digitsMax = 36 ** 2;

function check(place: string): string {
  let sum = 0;
  for (const char of place) sum = (sum * 41 + char.charCodeAt(0)) % digitsMax;
  return sum.toString(36).padStart(2, "0");
}
