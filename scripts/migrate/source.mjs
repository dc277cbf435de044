import { isUtf8 } from "node:buffer";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { lockDirectory } from "../../packages/server/dist/stores/sqlite/disk/lock.js";
import { openDatabase } from "../../packages/server/dist/stores/sqlite/driver.js";
import { schemaVersion } from "../../packages/server/dist/stores/sqlite/schema.js";
import { wholeText } from "../../packages/server/dist/stores/sqlite/texts/stored-texts.js";
import { Refused } from "./refused.mjs";

/**
 * Stored differently in PostgreSQL: the counter is a sequence, SQLite's own numbers are identities, large texts are in
 * their rows.
 */
const elsewhere = ["counter", "sqlite_sequence", "text_piece", "staged_text"];

/** Opens a data directory's SQLite database read-only, locked so that no server starts on it meanwhile. */
export function openSource(directory) {
  const file = join(directory, "millrace.db");
  if (!existsSync(file)) throw new Refused(`There is no SQLite database in ${directory}.`);
  const lock = lockDirectory(join(directory, "lock"));
  if (lock === undefined) throw new Refused(`A server uses the data directory ${directory}: stop it first.`);
  const db = openDatabase(file, { readOnly: true });
  const close = () => {
    db.close();
    lock.release();
  };
  try {
    checkVersion(db);
    db.exec("BEGIN");
    const statements = [];
    return {
      // keeps a reference: the npm package's iterators do not keep their statement from being garbage-collected
      statements,
      tables: tablesOf(db),
      rows: (table) => rowsOf(db, table, statements),
      nextPlace: () => db.prepare("SELECT value FROM counter WHERE name = 'next_place'").get().value,
      /** The highest number that each table has ever given out: those of deleted rows are never reused. */
      lastNumbers: () => db.prepare("SELECT name, seq FROM sqlite_sequence").all(),
      count: (table) => db.prepare(`SELECT count(*) AS n FROM "${table}"`).get().n,
      jobs: () => db.prepare(jobsByState).all(),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** The query that both databases answer. */
export const jobsByState = `SELECT endpoint_no, status, count(*) AS n FROM job
  GROUP BY endpoint_no, status ORDER BY endpoint_no, status`;

function checkVersion(db) {
  const { user_version: version } = db.prepare("PRAGMA user_version").get();
  if (version === schemaVersion) return;
  throw new Refused(
    version < schemaVersion
      ? `The SQLite database is of version ${version}, older than this program's ${schemaVersion}: first start and stop a server of this version on it once.`
      : `The SQLite database is of version ${version}, newer than this program's ${schemaVersion}: use the newer program.`,
  );
}

function tablesOf(db) {
  const names = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all();
  return names
    .map(({ name }) => name)
    .filter((name) => !elsewhere.includes(name))
    .map((name) => {
      const columns = db.prepare(`SELECT name, type, pk FROM pragma_table_info('${name}')`).all();
      const pieced = columns.filter((column) => columns.some((other) => other.name === `${column.name}_text`));
      return {
        name,
        columns: columns
          .filter((column) => !pieced.some((text) => column.name === `${text.name}_text`))
          .map((column) => ({ ...column, isText: column.type === "TEXT", isPieced: pieced.includes(column) })),
      };
    });
}

/** The rows of a table as lists of values. Texts are bytes, because nothing on the way reads them. */
function* rowsOf(db, { name, columns }, statements) {
  const selected = columns.map(({ name: column, isText, isPieced }) =>
    isText ? `CAST(${isPieced ? wholeText(column) : `"${column}"`} AS BLOB) AS "${column}"` : `"${column}"`,
  );
  const statement = db.prepare(`SELECT ${selected.join(", ")} FROM "${name}"`);
  statements.push(statement);
  for (const row of statement.iterate()) {
    // servers on PostgreSQL drop NULs from their notes too
    if (name === "job_event" && row.note?.includes(0)) row.note = row.note.filter((byte) => byte !== 0);
    for (const column of columns) if (column.isText) checkText(name, columns, row, row[column.name], column.name);
    yield columns.map((column) => row[column.name]);
  }
}

function checkText(table, columns, row, bytes, column) {
  if (bytes === null) return;
  const trouble = bytes.includes(0) ? "a NUL" : isUtf8(bytes) ? undefined : "bytes that are not UTF-8";
  if (trouble === undefined) return;
  const keys = columns.filter(({ pk }) => pk > 0);
  const key = keys.map(({ name, isText }) => `${name} ${isText ? Buffer.from(row[name]) : row[name]}`).join(", ");
  throw new Refused(
    `${column} in the row ${key} of the table ${table} holds ${trouble}, which PostgreSQL cannot store: nothing was moved.`,
  );
}
