import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import type { Stores } from "../../store/index.js";
import { tableStores } from "../tables/open.js";
import type { Runner } from "../tables/runner.js";
import type { Tables } from "../tables/schema.js";
import { diskReserve, noReserve } from "./disk/disk-reserve.js";
import { rewriteWal } from "./disk/wal.js";
import { cached, type Database, openDatabase, openForWriting, type Value } from "./driver.js";
import { sqliteJobStore } from "./jobs/job-store.js";
import { migrate as bringUpToDate } from "./migrate.js";
import { sqliteJobReader } from "./reader.js";
import { sqliteTallyReader } from "./tallies.js";
import { sqliteChunkStore } from "./texts/chunks.js";
import { stagedTexts, TextCutter, textsInPieces } from "./texts/stored-texts.js";
import { threaded } from "./writing/threaded.js";
import { GroupWriter, type GroupWriterParts } from "./writing/writer.js";
import { writes } from "./writing/writes.js";

function sqliteRunner(readDb: Database, writer: GroupWriter): Runner {
  const reads = cached(readDb);
  return {
    sql: new Kysely<Tables>({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (db) => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    }),
    read: async ({ sql, parameters }) => reads(sql).all(...(parameters as Value[])),
    texts: textsInPieces,
    // only the text and its values: the rest of a query cannot cross to another thread
    write: (queries, isGuarded = false) =>
      writer.word("statements", [queries.map(({ sql, parameters }) => ({ sql, parameters })), isGuarded]),
  };
}

export interface SqliteOptions {
  /** A file, or `:memory:`. */
  readonly path: string;
  /** Called when the disk has failed: the process must end and be restarted. */
  readonly onFatal: (error: Error) => void;
  /** Brings the schema to this code's version. */
  readonly migrate?: (db: Database) => void;
}

/** Opens a database's writer: in memory on this thread, which alone can reach it; for a file in a thread of its own. */
function openWriter({ path, migrate = bringUpToDate }: SqliteOptions): {
  readDb: Database;
  textDb?: Database;
  send: GroupWriterParts["send"];
  checkpoint?: () => Promise<boolean>;
  close: () => Promise<void>;
} {
  rewriteWal(path);
  const db = openForWriting(path);
  try {
    migrate(db);
  } catch (error) {
    db.close();
    throw error;
  }
  if (path === ":memory:") {
    const transactions = writes(db, noReserve);
    return { readDb: db, send: (group) => transactions.run(group), close: async () => {} };
  }
  const readDb = openDatabase(path, { readOnly: true });
  readDb.exec("PRAGMA cache_size = -65536");
  readDb.prepare("SELECT 1 FROM counter").get(); // keeps the log's index open from now on
  const textDb = openDatabase(path, { readOnly: true });
  db.close();
  return { readDb, textDb, ...threaded(path) };
}

/** Opens (and migrates) the SQLite stores. Throws a one-sentence error if the database is of a newer version. */
export function openSqlite(options: SqliteOptions): Stores {
  const { path, onFatal } = options;
  const { readDb, textDb, close, ...sending } = openWriter(options);
  const reserve = path === ":memory:" ? noReserve : diskReserve(path);
  const writer = new GroupWriter({ ...sending, onFatal, reserve });
  const texts = new TextCutter(readDb);
  writer.dropStaged(stagedTexts(readDb));
  const alive = readDb.prepare("SELECT 1");
  const runner = sqliteRunner(readDb, writer);
  return {
    ...tableStores(() => runner),
    jobs: sqliteJobStore(writer, texts),
    reader: sqliteJobReader(readDb, textDb),
    tallies: sqliteTallyReader(readDb),
    chunks: sqliteChunkStore(readDb, writer, texts),
    ping: async () => void alive.get(),
    close: async () => {
      await writer.close();
      readDb.close();
      textDb?.close();
      await close();
    },
  };
}
