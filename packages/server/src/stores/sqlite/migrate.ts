import type { Database } from "./driver.js";
import { schemaVersion, steps } from "./schema.js";

/**
 * Brings the schema to this code's version, or to an earlier one; refuses a newer database with a one-sentence error.
 */
export function migrate(db: Database, upTo = schemaVersion): void {
  const { user_version: version } = db.prepare("PRAGMA user_version").get() as { user_version: number };
  if (version > schemaVersion) {
    throw new Error(
      `The database is of version ${version}, newer than this program's ${schemaVersion}: start the newer program, or use another MILLRACE_DATA_DIR.`,
    );
  }
  for (let at = version; at < upTo; at++) {
    db.exec("BEGIN IMMEDIATE");
    db.exec(steps[at] as string);
    db.exec(`PRAGMA user_version = ${at + 1}`);
    db.exec("COMMIT");
  }
}
