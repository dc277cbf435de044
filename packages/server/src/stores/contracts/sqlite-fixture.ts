import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { Stores } from "../../store/index.js";
import { openInMemory } from "../../testing/database-fixture.js";
import { type Opened, storeContract } from "../contract.js";
import { openDatabase } from "../sqlite/driver.js";
import { openSqlite } from "../sqlite/open.js";

export const onFatal = (error: Error) => {
  throw error;
};
export const newDirectory = () => mkdtempSync(join(tmpdir(), "millrace-store-"));

/** Runs the stores' contract on SQLite in a file; the file and its thread stay open between tests. */
export function fileContract(name: string): void {
  const directory = newDirectory();
  const path = join(directory, "millrace.db");
  let stores: Stores;
  beforeAll(() => {
    stores = openSqlite({ path, onFatal });
  });
  afterAll(async () => {
    await stores?.close();
    rmSync(directory, { recursive: true });
  });
  const reopen = async () => {
    await stores.close();
    stores = openSqlite({ path, onFatal });
    return stores;
  };
  storeContract(name, async () => {
    clear(path);
    return { stores, reopen, end: async () => {} };
  });
}

/** Empties a database that stays open; no number is reused. */
function clear(path: string): void {
  const db = openDatabase(path);
  const counters = ["counter", "sqlite_sequence"];
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const emptied = tables.map(({ name }) => String(name)).filter((name) => !counters.includes(name));
  db.exec(`BEGIN IMMEDIATE; ${emptied.map((name) => `DELETE FROM "${name}";`).join(" ")} COMMIT`);
  db.close();
}

/** Stores in memory. */
export async function openMemory(): Promise<Opened> {
  const stores = openInMemory(onFatal);
  return { stores, reopen: undefined, end: () => stores.close() };
}
