import pg from "pg";
import { startPostgres, type TestPostgres } from "../../../scripts/postgres.mjs";
import { startProxy, type TcpProxy } from "../machine/proxy.js";

export type DatabaseKind = "sqlite" | "postgres";

/** Where a campaign's servers keep their jobs, and how it can be harmed. */
export interface Database {
  readonly kind: DatabaseKind;
  /** The environment that each server needs for it. */
  readonly env: Readonly<Record<string, string>>;
  /** Absent if the database is a part of the server. */
  readonly outside?: Outside;
  end(): Promise<void>;
}

/** A database that is a separate process. */
export interface Outside {
  /** Between the servers and the database. */
  readonly proxy: TcpProxy;
  /** Ends up to `count` of the servers' connections on the database's side; returns how many. */
  endConnections(count: number): Promise<number>;
  stop(signal: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
}

/** Opens an empty database of a kind. */
export async function openDatabase(kind: DatabaseKind): Promise<Database> {
  return kind === "sqlite" ? { kind, env: {}, end: async () => {} } : openPostgres();
}

/** All servers of one database share this key. */
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
  client.on("error", () => {}); // the query has reported it already
  try {
    await client.connect();
    const { rows } = await client.query<{ ended: number }>(endSome, [user, count]);
    return rows[0]?.ended ?? 0;
  } finally {
    await client.end();
  }
}
