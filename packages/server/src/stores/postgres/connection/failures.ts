import { busy, Refusal, storeAway } from "../../../errors.js";

const codeOf = (error: unknown): string => (error as { code?: string } | undefined)?.code ?? "";

/** Another server has changed the schema: a statement prepared before that works again on a new connection. */
const isOutdated = (error: unknown): boolean =>
  codeOf(error) === "0A000" && /cached plan/.test((error as Error).message);

/** The connection broke, or the server is stopping or starting: it is unknown whether the statement was committed. */
export function isLost(error: unknown): boolean {
  const code = codeOf(error);
  if (/^(08|57P0|25P03)/.test(code) || code === "53300" || /^E(CONN|PIPE|TIMEDOUT|HOST|NET|AI)/.test(code)) return true;
  const message = error instanceof Error ? error.message : "";
  if (isOutdated(error)) return true;
  return /connection terminated|connection ended|not queryable|read timeout|timeout exceeded|timeout expired|server closed/i.test(
    message,
  );
}

/** Two statements blocked each other: retried alone, each succeeds. */
export const isConflict = (error: unknown): boolean => /^(40P01|40001|55P03|57014)$/.test(codeOf(error));

/** The same, found by us: what a call read has changed before it could write. */
export const conflict = (message: string): Error => Object.assign(new Error(message), { code: "40001" });

const isFull = (error: unknown): boolean => /^53(100|200)$/.test(codeOf(error));

/** The error that a caller sees: a lost connection is a temporary failure, and a full disk has its own error. */
export function worded(error: unknown): unknown {
  if (isLost(error)) return storeAway();
  if (isConflict(error)) return busy();
  if (isFull(error)) return new Refusal("STORAGE_FULL", "The database's disk is full; free some space and try again.");
  return error;
}
