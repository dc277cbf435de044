import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Opened } from "../contract.js";
import { openSqlite } from "../sqlite/open.js";

export const onFatal = (error: Error) => {
  throw error;
};
export const newDirectory = () => mkdtempSync(join(tmpdir(), "millrace-store-"));

/** Stores in a file of their own, which can be opened again. */
export async function openFile(): Promise<Opened> {
  const directory = newDirectory();
  const path = join(directory, "millrace.db");
  let stores = openSqlite({ path, onFatal });
  return {
    stores,
    reopen: async () => {
      await stores.close();
      stores = openSqlite({ path, onFatal });
      return stores;
    },
    end: async () => {
      await stores.close();
      rmSync(directory, { recursive: true });
    },
  };
}

/** Stores in memory. */
export async function openMemory(): Promise<Opened> {
  const stores = openSqlite({ path: ":memory:", onFatal });
  return { stores, reopen: undefined, end: () => stores.close() };
}
