import { DatabaseSync } from "node:sqlite";
import { limits } from "../../limits/index.js";

/** A value that SQLite stores. */
export type Value = string | number | bigint | Uint8Array | null;

/** The part of node:sqlite's interface that we use. */
export interface Statement {
  run(...values: Value[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  // biome-ignore lint/suspicious/noExplicitAny: rows are given their type by the one toX(row) of their table
  get(...values: Value[]): any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  all(...values: Value[]): any[];
  // biome-ignore lint/suspicious/noExplicitAny: as above
  iterate(...values: Value[]): IterableIterator<any>;
}
export interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  close(): void;
}

/** Opens a database file, or `:memory:`. */
export function openDatabase(path: string, options: { readOnly?: boolean } = {}): Database {
  return new DatabaseSync(path, options);
}

/** Opens the only connection that writes: a commit is on disk when it returns. */
export function openForWriting(path: string): Database {
  const db = openDatabase(path);
  db.exec(`PRAGMA busy_timeout = ${limits.lockMs}`);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  db.exec("PRAGMA wal_autocheckpoint = 0");
  db.exec("PRAGMA cache_size = -65536");
  db.exec("PRAGMA temp_store = MEMORY");
  db.exec("PRAGMA journal_size_limit = 67108864");
  return db;
}

/** Prepares each statement once. */
export function cached(db: Database): (sql: string) => Statement {
  const statements = new Map<string, Statement>();
  return (sql) => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = db.prepare(sql);
      // lists of ids have a new text for every length
      if (statements.size < 500) statements.set(sql, statement);
    }
    return statement;
  };
}
