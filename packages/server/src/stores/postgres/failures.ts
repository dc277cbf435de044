import { busy, Refusal } from "../../errors.js";

const codeOf = (error: unknown): string => (error as { code?: string } | undefined)?.code ?? "";

/** Another server has changed the schema: a statement that was prepared before it works again on a new connection. */
const isOutdated = (error: unknown): boolean =>
  codeOf(error) === "0A000" && /cached plan/.test((error as Error).message);

/** The connection broke, or the server goes down or comes up: whether the statement was committed is unknown. */
export function isLost(error: unknown): boolean {
  const code = codeOf(error);
  if (/^(08|57P0|25P03)/.test(code) || code === "53300" || /^E(CONN|PIPE|TIMEDOUT|HOST|NET|AI)/.test(code)) return true;
  const message = error instanceof Error ? error.message : "";
  if (isOutdated(error)) return true;
  return /connection terminated|connection ended|not queryable|read timeout|timeout exceeded|timeout expired|server closed/i.test(
    message,
  );
}

/** Two statements stood in each other's way: run again, alone, each succeeds. */
export const isConflict = (error: unknown): boolean => /^(40P01|40001|55P03|57014)$/.test(codeOf(error));

const isFull = (error: unknown): boolean => /^53(100|200)$/.test(codeOf(error));

/** What a caller is told: a lost connection is a moment's trouble, a full disk has its own word. */
export function worded(error: unknown): unknown {
  if (isLost(error) || isConflict(error)) return busy();
  if (isFull(error)) return new Refusal("STORAGE_FULL", "The database's disk is full; free some space and try again.");
  return error;
}
