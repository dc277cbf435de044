import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { Connection } from "./connection/connection.js";
import { transaction } from "./connection/transaction.js";
import { schemaVersion, steps } from "./schema.js";

/** Any number will do, as long as all servers use the same one for migration. */
const migrationLock = 7_246_551_905;

/**
 * Brings the schema to this code's version, or to an earlier one. Of servers that start at once, one migrates and the
 * others wait.
 */
export async function migrate(connection: Connection, upTo = schemaVersion): Promise<void> {
  // polled, because a waiting statement is cancelled after some seconds and another server's step may take longer
  const isLocked = async () =>
    (await connection.query("SELECT 1 WHERE pg_try_advisory_lock($1)", [migrationLock])).length > 0;
  while (!(await isLocked())) await realTime.sleep(limits.databaseRetryMs);
  try {
    await connection.query("SET statement_timeout = 0");
    await connection.query("CREATE TABLE IF NOT EXISTS schema (version bigint NOT NULL)");
    const [row] = await connection.query<{ version: number }>("SELECT version FROM schema");
    const version = row?.version ?? 0;
    if (version > schemaVersion) {
      throw new Error(
        `The database is of version ${version}, newer than this program's ${schemaVersion}: start the newer program, or use another MILLRACE_DATABASE_URL.`,
      );
    }
    for (let at = version; at < upTo; at++) {
      await transaction(connection, async () => {
        await connection.query(steps[at] as string);
        await connection.query(at === 0 ? "INSERT INTO schema VALUES (1)" : `UPDATE schema SET version = ${at + 1}`);
      });
    }
    await connection.query("RESET statement_timeout");
  } finally {
    await connection.query("SELECT pg_advisory_unlock($1)", [migrationLock]).catch(() => {}); // the lock ends with the connection
  }
}
