import { openDatabase } from "../driver.js";

/**
 * Locks a data directory for one process: the system releases it however the process ends. Returns `undefined` if
 * another process holds the lock.
 */
export function lockDirectory(path: string): { release: () => void } | undefined {
  const db = openDatabase(path);
  try {
    db.exec("PRAGMA busy_timeout = 0");
    db.exec("BEGIN EXCLUSIVE");
  } catch {
    db.close();
    return undefined;
  }
  return { release: () => db.close() };
}
