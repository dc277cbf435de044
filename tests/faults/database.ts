import pg from "pg";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { startProxy, type TcpProxy } from "./proxy.js";

export type DatabaseKind = "sqlite" | "postgres";

/** Where the servers of a campaign keep their jobs, and what can be done to it. */
export interface Database {
  readonly kind: DatabaseKind;
  /** What each server is given of it. */
  readonly env: Readonly<Record<string, string>>;
  /** Absent where the database lives in the server. */
  readonly outside?: Outside;
  end(): Promise<void>;
}

/** A database that is a party of its own. */
export interface Outside {
  /** Between the servers and the database. */
  readonly proxy: TcpProxy;
  /** Ends up to `count` of the servers' connections from the database's side; says how many. */
  endConnections(count: number): Promise<number>;
  stop(signal: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
}

/** Opens an empty database of a kind. */
export async function openDatabase(kind: DatabaseKind): Promise<Database> {
  return kind === "sqlite" ? { kind, env: {}, end: async () => {} } : openPostgres();
}

/** The same for all servers of one database. */
const sealKey = "5ea1".repeat(16);
const user = "millrace";

async function openPostgres(): Promise<Database> {
  const postgres = await startPostgres();
  const proxy = await startProxy(postgres.port);
  return {
    kind: "postgres",
    env: {
      MILLRACE_DATABASE_URL: `postgres://${user}@127.0.0.1:${proxy.port}/postgres`,
      MILLRACE_SEAL_KEY: sealKey,
    },
    outside: {
      proxy,
      endConnections: (count) => endConnections(postgres, count),
      stop: (signal) => postgres.stop(signal),
      start: () => postgres.start(),
    },
    async end() {
      await proxy.end();
      await postgres.end();
    },
  };
}

const endSome = `SELECT count(pg_terminate_backend(pid))::int AS ended FROM (
  SELECT pid FROM pg_stat_activity
  WHERE usename = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  ORDER BY random() LIMIT $2) AS chosen`;

async function endConnections(postgres: TestPostgres, count: number): Promise<number> {
  const client = new pg.Client({ connectionString: postgres.url() });
  client.on("error", () => {}); // said by the query already
  try {
    await client.connect();
    const { rows } = await client.query<{ ended: number }>(endSome, [user, count]);
    return rows[0]?.ended ?? 0;
  } finally {
    await client.end();
  }
}
