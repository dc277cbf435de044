import { invalid } from "../../../errors.js";
import type { Needs } from "../../../operations/needs.js";

type Sealing = Needs<"vault">;

/** The form of a cursor. */
export const cursorPattern = "^[0-9a-f]{32}$";

/** What a cursor must be, in words. */
export const cursorTitle = "the nextCursor of a reply: leave it out to begin with the newest";

/**
 * The cursor for a place in a list. Places are numbers that all users share: covered, they do not tell a user how much
 * the others did meanwhile.
 */
export const writeCursor = ({ vault }: Sealing, list: string, place: number): string => vault.cover(list, place);

/** The place in a cursor that a caller gave; undefined if none was. Refuses one that was not written for this list. */
export function readCursor({ vault }: Sealing, list: string, cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const place = new RegExp(cursorPattern).test(cursor) ? vault.uncover(list, cursor) : undefined;
  if (place === undefined) throw invalid(`'cursor' must be ${cursorTitle}.`);
  return place;
}
