import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from "kysely";
import { limits } from "../../limits/index.js";
import type { Stores } from "../../store/index.js";
import { textsInPlace } from "../tables/job-row.js";
import { tableStores } from "../tables/open.js";
import type { Runner } from "../tables/runner.js";
import type { Tables } from "../tables/schema.js";
import type { Connection } from "./connection/connection.js";
import { Connections } from "./connection/connections.js";
import { transaction } from "./connection/transaction.js";
import { postgresJobStore } from "./jobs/jobs.js";
import { migrate } from "./migrate.js";
import { postgresJobReader } from "./reader.js";
import { postgresSharedStore } from "./servers/shared.js";
import { lanesPerServer, postgresTallyReader } from "./tallies.js";
import { postgresChunkStore } from "./texts/chunks.js";
import { createWorker, placeWorker } from "./workers.js";
import { Lanes, type Verb } from "./writer.js";

/** Statements of a store of cool tables, in one commit. Stores take turns: thousands of deliveries may wait to be recorded. */
const statementsVerb = (): Verb<[queries: readonly CompiledQuery[], isGuarded: boolean], unknown[][]> => ({
  callsMax: 1,
  async run({ connection }, [[queries, isGuarded] = [[], false]]) {
    const run = async () => {
      const rows: unknown[][] = [];
      for (const query of queries) {
        rows.push(await connection.query(query.sql, query.parameters));
        if (isGuarded && rows[0]?.length === 0) break;
      }
      return rows;
    };
    return [queries.length === 1 ? await run() : await transaction(connection, run)];
  },
});

/** Compiles statements for PostgreSQL; it never executes. */
export const sql = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

function postgresRunner(reads: Connections, words: Lanes): Runner {
  const statements = statementsVerb();
  return {
    sql,
    rowVersion: "xmin::text",
    texts: textsInPlace,
    read: (query) => reads.read(query.sql, query.parameters),
    write: (queries, isGuarded = false) => words.call(statements, [queries, isGuarded]),
  };
}

/**
 * Texts are stored as they arrived, whatever they contain: a database with another encoding would change or refuse
 * some.
 */
async function checkEncoding(connection: Connection): Promise<void> {
  const [row] = await connection.query<{ encoding: string }>("SELECT current_setting('server_encoding') AS encoding");
  if (row?.encoding === "UTF8") return;
  throw new Error(
    `The database's encoding is ${row?.encoding} but must be UTF8: in MILLRACE_DATABASE_URL name a database created with ENCODING 'UTF8' TEMPLATE template0.`,
  );
}

export { isLost as isUnreachable } from "./connection/failures.js";

export interface PostgresOptions {
  /** `postgres://…` */
  readonly url: string;
  /** The server's id; the server has tally rows of its own. */
  readonly serverId: string;
  /** Called when the database answers again after an outage. */
  readonly onBack: () => void;
}

/** Opens (and migrates) the PostgreSQL stores. Throws a one-sentence error if the database is of a newer version. */
export async function openPostgres({ url, serverId, onBack }: PostgresOptions): Promise<Stores> {
  const reads = new Connections(url, limits.readersMax);
  const textReads = new Connections(url, limits.textReadersMax);
  // however many read the queue, resources can be changed, and servers hear of each other
  const tableReads = new Connections(url, limits.tableReadersMax);
  const ownReads = new Connections(url, limits.ownReadersMax);
  const writes = new Connections(url, limits.writersMax);
  const pools = [reads, textReads, tableReads, ownReads, writes];
  try {
    const serverNo = await writes.lend(async (connection) => {
      await checkEncoding(connection);
      await migrate(connection);
      // not marked as seen yet: a server that is refused later must not be given workers
      const [server] = await connection.query<{ no: number }>(
        "INSERT INTO server (id, seen_at) VALUES ($1, 0) ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING no",
        [serverId],
      );
      return (server as { no: number }).no;
    });
    const lane = (n: number) => serverNo * lanesPerServer + n;
    const numbersOf = (first: number) => Array.from({ length: limits.wordLanes }, (_, n) => lane(first + n));
    const words = new Lanes(writes, numbersOf(0), 2, onBack);
    const calls = new Lanes(writes, numbersOf(limits.wordLanes), 1, onBack);
    const grants = new Lanes(writes, numbersOf(2 * limits.wordLanes).slice(0, 1), 1, onBack);
    const tables = tableStores(() => postgresRunner(tableReads, words));
    return {
      ...tables,
      workers: { ...tables.workers, create: createWorker(words, serverNo), place: placeWorker(words, serverNo) },
      jobs: postgresJobStore(calls, words),
      reader: postgresJobReader(reads, textReads),
      tallies: postgresTallyReader(reads),
      chunks: postgresChunkStore(reads, textReads, words),
      shared: postgresSharedStore({ reads: ownReads, words, grants }, { no: serverNo, id: serverId }),
      ping: async () => void (await ownReads.read("SELECT 1", [])),
      close: async () => {
        await Promise.all([words.close(), calls.close(), grants.close()]);
        await Promise.all(pools.map((pool) => pool.close()));
      },
    };
  } catch (error) {
    await Promise.all(pools.map((pool) => pool.close()));
    throw error;
  }
}
