import type { DatabaseSync } from "node:sqlite";
import type { Stores } from "../store/index.js";
import type { Database } from "../stores/sqlite/driver.js";
import { migrate } from "../stores/sqlite/migrate.js";
import { openSqlite } from "../stores/sqlite/open.js";

/** An empty database of this version. */
let empty: Uint8Array | undefined;

/** Making the tables takes longer than most tests do with them, so it is done once in a process. */
function copyTables(db: Database): void {
  const real = db as DatabaseSync;
  if (empty) real.deserialize(empty);
  else {
    migrate(db);
    empty = real.serialize();
  }
}

/** Opens the SQLite stores over an empty database in memory. */
export const openInMemory = (onFatal: (error: Error) => void): Stores =>
  openSqlite({ path: ":memory:", onFatal, migrate: copyTables });
