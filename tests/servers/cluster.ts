import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { freePort, root, startServer, type TestServer, until } from "../harness.js";

/** The environment shared by the servers of one database. */
export const shared = {
  MILLRACE_SEAL_KEY: "5ea1".repeat(16),
  MILLRACE_API_KEY: "mr_test_0123456789abcdef0123456789abcdef",
  MILLRACE_RATE_LIMITS: "off",
  MILLRACE_DEMO: "off",
};

/** One of several servers; each is its own host. */
export interface Member extends TestServer {
  /** Its host's number in the database. */
  readonly hostNo: number;
  readonly serverNo: number;
}

/** Several servers on one database. */
export interface Cluster {
  readonly postgres: TestPostgres;
  readonly members: readonly Member[];
  /** The address of the database. */
  readonly url: string;
  /** Queries the database directly, not through the servers. */
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Starts another server. */
  join(env?: Record<string, string>): Promise<Member>;
  /** Resolves when the scaler has heard of every host that exists now. */
  settled(): Promise<void>;
  /** The server that owns a loop now; undefined if none does. */
  ownerOf(loop: string): Promise<Member | undefined>;
  end(): Promise<void>;
}

/** Sends a query on its own connection, so that it works while the database stops and returns. */
export async function ask<Row>(url: string, text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: readNumbers } });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}

const readNumbers = ((oid: number, format?: "text" | "binary") =>
  oid === pg.types.builtins.INT8
    ? Number
    : pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig["getTypeParser"];

/** Makes an empty database on a server, and resolves with its address. */
export async function makeDatabase(postgres: TestPostgres, name: string): Promise<string> {
  await ask(postgres.url(), `CREATE DATABASE ${name} TEMPLATE template0`);
  return postgres.url(name);
}

/** Starts PostgreSQL and `size` servers on it. */
export async function startCluster(size: number, env: Record<string, string> = {}): Promise<Cluster> {
  const postgres = await startPostgres();
  const members: Member[] = [];
  const url = await makeDatabase(postgres, "cluster");
  const query = <Row>(text: string, values?: unknown[]) => ask<Row>(url, text, values);
  const cluster: Cluster = {
    postgres,
    members,
    url,
    query,
    async join(more = {}) {
      const server = await startServer({ ...shared, MILLRACE_DATABASE_URL: url, ...env, ...more });
      const id = readFileSync(join(server.dataDir, "host"), "utf8").trim();
      const numberIn = async (table: "host" | "server") =>
        (await query<{ no: number }>(`SELECT no FROM ${table} WHERE id = $1`, [id]))[0]?.no ?? 0;
      const numbers = { hostNo: await numberIn("host"), serverNo: await numberIn("server") };
      const member = Object.assign(Object.create(server) as TestServer, numbers);
      members.push(member);
      return member;
    },
    async settled() {
      const now = Date.now();
      // A lease lasts 5 s from the beat that renews it. Once the next beat has ended, the beat after it has begun.
      const isPast = async () => {
        const leases = await query<{ until_at: number }>("SELECT until_at FROM lease WHERE name = 'scale'");
        return leases.some(({ until_at: until }) => until > now + 6_000);
      };
      await until(isPast, 30_000);
    },
    async ownerOf(loop) {
      const [lease] = await query<{ holder: number }>("SELECT holder FROM lease WHERE name = $1 AND until_at > $2", [
        loop,
        Date.now(),
      ]);
      return members.find(({ serverNo }) => serverNo === lease?.holder);
    },
    async end() {
      await Promise.all(members.map((member) => member.end()));
      await postgres.end();
    },
  };
  await Promise.all(Array.from({ length: size }, () => cluster.join()));
  if (size > 0) await cluster.settled();
  return cluster;
}

/** A server process that need not become ready. */
export interface Attempt {
  readonly child: ChildProcess;
  log(): string;
  /** Resolves with its exit code. */
  readonly ended: Promise<number | null>;
  /** Ends it if it still runs, and removes its directory. */
  end(): Promise<void>;
}

/** Starts a server that may be refused; `command` is put before the node command. */
export async function attemptServer(env: Record<string, string>, command: readonly string[] = []): Promise<Attempt> {
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-test-"));
  const [program = "", ...args] = [...command, process.execPath, join(root, "packages/server/dist/main.js")];
  const child = spawn(program, args, {
    cwd: root,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
      MILLRACE_DATA_DIR: dataDir,
      MILLRACE_PORT: String(await freePort()),
      ...shared,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const out of [child.stdout, child.stderr]) out?.on("data", (text) => (output += text));
  // Read its output to the end before it counts as ended.
  const ended = new Promise<number | null>((done) => child.once("close", (code) => done(code)));
  return {
    child,
    log: () => output,
    ended,
    async end() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

/** The lines of a log that are not JSON records: sentences for the operator. */
export const sentencesOf = (log: string): string[] => log.split("\n").filter((line) => line !== "" && line[0] !== "{");
