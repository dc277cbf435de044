import pg from "pg";
import { afterAll, beforeAll, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../scripts/postgres.mjs";
import type { Stores } from "../../store/index.js";
import { storeContract } from "../contract.js";
import { openPostgres } from "../postgres/open.js";
import type { Opened } from "./scene.js";

/** Creates a database on a server and resolves with its URL. */
export async function makeDatabase(server: TestPostgres, name: string): Promise<string> {
  await asAdmin(server.url(), `CREATE DATABASE ${name} TEMPLATE template0`);
  return server.url(name);
}

/** Runs statements on a separate connection. */
export async function asAdmin(url: string, text: string): Promise<void> {
  const admin = new pg.Client(url);
  await admin.connect();
  await admin.query(text);
  await admin.end();
}

/** Resolves with the backend process whose statement waits for a lock, once there is one other than `former`. */
export async function waitingProcess(url: string, former = 0): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  const asked = `SELECT pid FROM pg_stat_activity WHERE application_name = 'millrace' AND wait_event_type = 'Lock' AND pid <> $1`;
  const look = async () => {
    const [row] = (await client.query(asked, [former])).rows;
    if (row) return row.pid;
    throw new Error("no statement waits for a lock");
  };
  try {
    return await vi.waitFor(look, { timeout: 20_000, interval: 20 });
  } finally {
    await client.end();
  }
}

/** Breaks most connections again and again, each time after a few tens of calls; it is told of each that has ended. */
export function keepBreaking(url: string) {
  let isOver = false;
  let callsLeft = 0;
  let breakNow = () => {};
  const breaking = (async () => {
    for (let breaks = 0; ; breaks++) {
      callsLeft = 20 + Math.random() * 40;
      await new Promise<void>((resolve) => {
        breakNow = resolve;
        if (isOver) resolve();
      });
      if (isOver) return breaks;
      await asAdmin(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millrace' AND random() < 0.7",
      );
    }
  })();
  return {
    ended(): void {
      if (--callsLeft <= 0) breakNow();
    },
    /** Resolves with how often it has broken them. */
    stop(): Promise<number> {
      isOver = true;
      breakNow();
      return breaking;
    },
  };
}

/** Empties all tables except the one with the schema's version. */
const emptied = `
  DO $$ BEGIN
    EXECUTE coalesce((SELECT 'TRUNCATE ' || string_agg(quote_ident(relname), ', ') || ' RESTART IDENTITY' FROM pg_class
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'schema'), 'SELECT 1');
    IF EXISTS (SELECT FROM pg_class WHERE relname = 'place') THEN PERFORM setval('place', 1, false); END IF;
  END $$`;

/** The same for a database that stays open: its server's row stays, and no number is reused. */
const cleared = `
  DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT quote_ident(relname) FROM pg_class
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN ('schema', 'server')
    LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
    DELETE FROM server WHERE id <> 'host';
  END $$`;

/** Opens a database as one of several servers would. */
export const openAs = (serverId: string, url: string) => openPostgres({ url, serverId, onBack: () => {} });

/** Opens the same database again and again, emptied each time. */
export async function openEmptied(url: string): Promise<Opened> {
  await asAdmin(url, emptied);
  const open = () => openAs("host", url);
  let stores = await open();
  return {
    stores,
    reopen: async () => {
      await stores.close();
      stores = await open();
      return stores;
    },
    end: () => stores.close(),
  };
}

/** Runs the stores' contract on a PostgreSQL of these binaries; its connections stay open between tests. */
export function postgresContract(name: string, binaries: string | undefined): void {
  let server: TestPostgres;
  let url: string;
  let admin: pg.Client;
  let stores: Stores;
  // No syncs: the suite checks order, not durability.
  beforeAll(async () => {
    server = await startPostgres({ binaries, settings: { fsync: "off" } });
    url = await makeDatabase(server, "contract");
    stores = await openAs("host", url);
    admin = new pg.Client(url);
    await admin.connect();
  });
  afterAll(async () => {
    await stores?.close();
    await admin?.end();
    await server?.end();
  });
  const reopen = async () => {
    await stores.close();
    stores = await openAs("host", url);
    return stores;
  };
  storeContract(name, async () => {
    await admin.query(cleared);
    return { stores, reopen, end: async () => {} };
  });
}
