import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { Stores } from "../../store.js";
import { tableStores } from "../tables/open.js";
import type { Runner } from "../tables/runner.js";
import type { Tables } from "../tables/schema.js";
import { sqliteChunkStore } from "./chunks.js";
import { diskReserve, noReserve } from "./disk-reserve.js";
import { type Database, openDatabase, type Statement, type Value } from "./driver.js";
import { sqliteJobStore } from "./jobs.js";
import { sqliteJobReader } from "./reader.js";
import { migrate } from "./schema.js";
import { sqliteTallyReader, Tallies } from "./tallies.js";
import { rewriteWal } from "./wal.js";
import { GroupWriter } from "./writer.js";

function cached(db: Database): (sql: string) => Statement {
  const statements = new Map<string, Statement>();
  return (sql) => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = db.prepare(sql);
      // lists of ids of every length make ever new texts
      if (statements.size < 500) statements.set(sql, statement);
    }
    return statement;
  };
}

function sqliteRunner(readDb: Database, writeDb: Database, writer: GroupWriter): Runner {
  const reads = cached(readDb);
  const writes = cached(writeDb);
  const values = (query: CompiledQuery) => query.parameters as Value[];
  writer.learn({
    statements: (queries: readonly CompiledQuery[]) => queries.map((query) => writes(query.sql).all(...values(query))),
  });
  return {
    sql: new Kysely<Tables>({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (db) => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    }),
    read: async (query) => reads(query.sql).all(...values(query)),
    write: (queries) => writer.word("statements", [queries]),
  };
}

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** Called when the disk has failed: the process must end, and be started again. */
  readonly onFatal: (error: Error) => void;
}

/** Opens (and migrates) the SQLite stores. Throws with one sentence where the database is of a newer version. */
export function openSqlite({ path, onFatal }: SqliteOptions): Stores {
  rewriteWal(path);
  const db = openDatabase(path);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  db.exec("PRAGMA busy_timeout = 5000");
  db.exec("PRAGMA cache_size = -65536");
  db.exec("PRAGMA temp_store = MEMORY");
  db.exec("PRAGMA journal_size_limit = 67108864");
  try {
    migrate(db);
  } catch (error) {
    db.close();
    throw error;
  }
  const readDb = path === ":memory:" ? db : openDatabase(path, { readOnly: true });
  if (readDb !== db) readDb.exec("PRAGMA cache_size = -65536");
  const tallies = new Tallies(db);
  const reserve = path === ":memory:" ? noReserve : diskReserve(path);
  const writer = new GroupWriter(db, tallies, { onFatal, reserve });
  const alive = readDb.prepare("SELECT 1");
  return {
    ...tableStores(sqliteRunner(readDb, db, writer)),
    jobs: sqliteJobStore(db, tallies, writer),
    reader: sqliteJobReader(readDb, tallies),
    tallies: sqliteTallyReader(readDb),
    chunks: sqliteChunkStore(db, readDb, writer),
    ping: async () => void alive.get(),
    close: async () => {
      await writer.close();
      if (readDb !== db) readDb.close();
      db.close();
    },
  };
}
