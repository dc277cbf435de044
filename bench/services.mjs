// The services that the sides use: PostgreSQL, Redis, the load generator. Each starts when a row first needs it.
import { createRequire } from "node:module";
import { startPostgres } from "../scripts/postgres.mjs";
import { startMillrace } from "./millrace.mjs";
import { freePort, makeFolder, reach, start, startAgent, stop } from "./processes.mjs";

/** The settings with which both databases keep acknowledged data through a power failure. */
const postgresSettings = { fsync: "on", synchronous_commit: "on", full_page_writes: "on" };
const redisSettings = { appendonly: "yes", appendfsync: "always" };

export class Services {
  #scope;
  #started = new Map();
  #databases = 0;

  constructor(scope) {
    this.#scope = scope;
  }

  /** The load generator: one process for all sides. */
  load = (plan) =>
    this.#once("load", () => startAgent(this.#scope, "agents/load.mjs")).then((agent) => agent.ask("run", plan));

  postgres = () => this.#once("postgres", () => openPostgres(this.#scope));
  redis = () => this.#once("redis", () => openRedis(this.#scope));

  /** A new, empty database of the PostgreSQL server; resolves with its address. */
  async database(prefix) {
    const postgres = await this.postgres();
    const name = `${prefix}_${++this.#databases}`;
    await query(postgres.url(), `CREATE DATABASE ${name}`);
    return postgres.url(name);
  }

  /** The storage settings of a Millrace server; no settings mean SQLite. */
  async storage(database) {
    return database === "postgres" ? { databaseUrl: await this.database("millrace") } : {};
  }

  /** A running Millrace server on one of the databases. */
  startMillrace = async (scope, database, options = {}) =>
    startMillrace(scope, { ...(await this.storage(database)), ...options });

  /** The services that were started. */
  async used() {
    return { postgres: await this.#started.get("postgres"), redis: await this.#started.get("redis") };
  }

  #once(name, open) {
    const opened = this.#started.get(name) ?? open();
    this.#started.set(name, opened);
    return opened;
  }
}

async function openPostgres(scope) {
  const postgres = await startPostgres({ settings: postgresSettings });
  scope.defer(() => postgres.end());
  return postgres;
}

/** A connection to one of the databases, with the server's driver. */
export async function connectPostgres(url) {
  const { Client } = createRequire(import.meta.url)("pg");
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
}

/** Runs one statement; resolves with its rows. */
async function query(url, text) {
  const client = await connectPostgres(url);
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function openRedis(scope) {
  const port = await freePort();
  const settings = { port, bind: "127.0.0.1", dir: makeFolder(scope), save: "", ...redisSettings };
  const child = start(
    "redis-server",
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
  );
  scope.defer(() => stop(child));
  const { default: Redis } = await import("ioredis");
  const client = new Redis({ port, host: "127.0.0.1", lazyConnect: true, retryStrategy: () => 50 });
  scope.defer(() => client.disconnect());
  client.on("error", () => {});
  client.connect().catch(() => {});
  await reach("an answer of Redis", () => client.status === "ready" || child.exitCode !== null);
  if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}.`);
  return { port, client };
}

/** The lines that describe the services and their durability, as the services themselves report them. */
export async function describeServices({ postgres, redis }) {
  const lines = [];
  if (postgres !== undefined) {
    const shown = [];
    for (const name of Object.keys(postgresSettings)) {
      shown.push(`${name} ${(await query(postgres.url(), `SHOW ${name}`))[0][name]}`);
    }
    lines.push(`PostgreSQL ${postgres.version}: ${shown.join(", ")}; else its defaults`);
  }
  if (redis !== undefined) {
    const shown = [];
    for (const name of Object.keys(redisSettings)) shown.push((await redis.client.config("GET", name)).join(" "));
    const version = /redis_version:(\S+)/.exec(await redis.client.info("server"))?.[1];
    lines.push(`Redis ${version}: ${shown.join(", ")}; no snapshots`);
  }
  return lines;
}
