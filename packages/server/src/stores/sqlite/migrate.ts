import type { Database } from "./driver.js";
import { schemaVersion, steps } from "./schema.js";

/**
 * Brings the schema to this code's version, or to an earlier one, in whole or not at all; refuses a newer database with a
 * one-sentence error.
 */
export function migrate(db: Database, upTo = schemaVersion): void {
  const { user_version: version } = db.prepare("PRAGMA user_version").get() as { user_version: number };
  if (version > schemaVersion) {
    throw new Error(
      `The database is of version ${version}, newer than this program's ${schemaVersion}: start the newer program, or use another MILLRACE_DATA_DIR.`,
    );
  }
  if (version >= upTo) return;
  // in one transaction: each would wait for the disk
  db.exec("BEGIN IMMEDIATE");
  for (const step of steps.slice(version, upTo)) db.exec(step);
  db.exec(`PRAGMA user_version = ${upTo}`);
  db.exec("COMMIT");
}
