import pg from "pg";
import { realTime } from "../../../clock.js";
import { storeAway } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { storable } from "./arrays.js";
import type { Connection } from "./connection.js";
import { isLost, worded } from "./failures.js";
import { LargeTexts, queryLarge } from "./large-texts.js";

const types = {
  // all our integers are below 2^53
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC ? Number : pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig;

/**
 * Every statement of ours uses an index and returns few rows. A plan that reads whole tables, chosen while the tables
 * were small, would be kept for hours. Planning only once also halves the time of a small statement.
 */
const options = [
  "enable_seqscan=off",
  "enable_hashjoin=off",
  "enable_mergejoin=off",
  "jit=off",
  "plan_cache_mode=force_generic_plan",
  "work_mem=64MB",
  "synchronous_commit=on",
  "default_transaction_isolation=read\\ committed", // a role or a database may have a different default
]
  .map((setting) => `-c ${setting}`)
  .join(" ");

/** How our connections are opened. */
export const connectionConfig = (url: string): pg.ClientConfig => ({
  connectionString: url,
  application_name: "millrace",
  options,
  types,
  keepAlive: true,
  statement_timeout: limits.statementMs,
  idle_in_transaction_session_timeout: limits.statementMs,
  query_timeout: limits.statementMs + limits.netMs,
  connectionTimeoutMillis: limits.connectMs,
});

const names = new Map<string, string>();

/** A statement that is prepared once per connection. */
function prepared(text: string, given: readonly unknown[]): pg.QueryConfig {
  const values = given.map((value) => (typeof value === "string" ? storable(value) : value));
  let name = names.get(text);
  if (name === undefined) {
    // lists of ids have a new text for every length
    if (names.size >= 500) return { text, values };
    name = `s${names.size}`;
    names.set(text, name);
  }
  return { name, text, values };
}

function connectionOf(client: pg.ClientBase): Connection {
  const connection: Connection = {
    query: async (text, values) => {
      if (values?.some((value) => value instanceof LargeTexts)) return queryLarge(connection, text, values);
      return (await (values ? client.query(prepared(text, values)) : client.query(text))).rows;
    },
  };
  return connection;
}

const endBroken = `SELECT pg_terminate_backend(pid, ${limits.netMs}) AS ended FROM pg_stat_activity
  WHERE pid = ANY ($1::int[]) AND pid <> pg_backend_pid() AND usename = current_user AND application_name = 'millrace'`;

/** Connections to one database, opened on demand, and again after they broke. */
export class Connections {
  readonly #pool: pg.Pool;
  /** The database's processes behind broken connections: they may still be executing a statement. */
  readonly #broken = new Set<number>();
  readonly #plans = new WeakMap<pg.PoolClient, { madeAt: number; keptMs: number }>();

  constructor(url: string, max: number) {
    this.#pool = new pg.Pool({ ...connectionConfig(url), max, idleTimeoutMillis: limits.connectionIdleMs });
    // an idle connection broke: the next use opens another
    this.#pool.on("error", () => {});
    this.#pool.on("connect", (client) => void client.on("error", () => {}));
  }

  /** Lends a connection; a broken one is discarded. */
  async lend<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let broken: Error | undefined;
    try {
      await this.#renewPlans(client);
      return await use(connectionOf(client));
    } catch (error) {
      // discard the connection together with whatever state a failed transaction left
      broken = error instanceof Error ? error : new Error(String(error));
      throw error;
    } finally {
      const isOver = broken !== undefined && (isLost(broken) || inTransaction(client));
      if (isOver) this.#broken.add(processOf(client));
      client.release(isOver ? broken : undefined);
    }
  }

  /**
   * Makes a connection plan its statements again after a second, then two, then four … A plan made while a table was
   * small scans all of it once it has grown: such a take took 19 ms among 12,000 jobs, and 1 ms with a new plan.
   */
  async #renewPlans(client: pg.PoolClient): Promise<void> {
    const now = realTime.monotonicMs();
    const plans = this.#plans.get(client);
    if (plans && now < plans.madeAt + plans.keptMs) return;
    if (plans) await client.query("DISCARD PLANS");
    const keptMs = plans ? Math.min(2 * plans.keptMs, limits.plansKeptMsMax) : limits.plansKeptMsMin;
    this.#plans.set(client, { madeAt: now, keptMs });
  }

  /**
   * Whether the database answers, and no statement of a broken connection is still running there. Only then can we tell
   * whether such a statement was committed.
   */
  async isBack(): Promise<boolean> {
    const broken = [...this.#broken];
    try {
      const rows = await this.lend((connection) => connection.query<{ ended: boolean }>(endBroken, [broken]));
      if (!rows.every(({ ended }) => ended)) return false;
      for (const process of broken) this.#broken.delete(process);
      return true;
    } catch {
      return false;
    }
  }

  /** Reads, and retries for a while if the connection breaks: a read may be repeated. */
  async read<Row>(text: string, values: readonly unknown[]): Promise<Row[]> {
    const giveUpAt = realTime.monotonicMs() + limits.databasePatienceMs;
    for (;;) {
      try {
        const rows = await this.lend((connection) => connection.query<Row>(text, values));
        this.#broken.clear(); // the outcome of a read does not matter
        return rows;
      } catch (error) {
        if (!isLost(error)) throw worded(error);
        if (realTime.monotonicMs() > giveUpAt) throw storeAway();
        await realTime.sleep(limits.reconnectMs);
      }
    }
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}

const processOf = (client: pg.PoolClient): number => (client as unknown as { processID?: number }).processID ?? 0;

const inTransaction = (client: pg.PoolClient): boolean =>
  ((client as unknown as { _txStatus?: string })._txStatus ?? "I") !== "I";
