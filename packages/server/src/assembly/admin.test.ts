import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readConfig } from "../config.js";
import { openDataDirectory } from "../host/data-directory.js";
import { systemIds } from "../ids.js";
import type { Stores } from "../store/index.js";
import { openSqlite } from "../stores/sqlite/open.js";
import { MovableClock } from "../testing/movable-clock-fixture.js";
import { localVault } from "../vaults/local.js";
import { ensureAdmin, sealKeyOf } from "./admin.js";

let dataDir: string;
let stores: Stores;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "millrace-admin-"));
  stores = openSqlite({
    path: ":memory:",
    onFatal: (error) => {
      throw error;
    },
  });
});
afterEach(async () => {
  await stores.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const start = (env: Record<string, string> = {}) => {
  const config = readConfig({ MILLRACE_DATA_DIR: dataDir, ...env });
  const directory = openDataDirectory(dataDir);
  const sealKey = sealKeyOf(config, directory);
  const vault = localVault(Buffer.from(sealKey.hex, "hex"));
  return ensureAdmin({ config, directory, stores, vault, sealKey, ids: systemIds, clock: new MovableClock() });
};
const sealKeyFile = () => join(dataDir, "seal-key");

describe("The key that seals secrets", () => {
  it("is made and stored by the first start, and used by the next", async () => {
    const { key } = await start();
    expect(existsSync(sealKeyFile())).toBe(true);
    expect(await start()).toEqual({ key, newKey: undefined });
  });

  it("is reported missing at each start if secrets are sealed already, and no new one is made", async () => {
    await start();
    rmSync(sealKeyFile());
    for (const _ of [1, 2]) {
      await expect(start()).rejects.toThrow(/^The seal key is missing: put the file seal-key back into .*\.$/);
      expect(existsSync(sealKeyFile())).toBe(false);
    }
  });

  it("is reported if it differs from the one in use", async () => {
    await start();
    const other = start({ MILLRACE_SEAL_KEY: "0".repeat(64) });
    await expect(other).rejects.toThrow(/^MILLRACE_SEAL_KEY is not the key that sealed/);
  });
});
