import { openDatabase } from "./driver.js";

/** Holds a data directory for one process: the system lets go of it however the process ends. `undefined`: someone else holds it. */
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
