import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
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
import { ensureAdmin, keptKey, sealKeyOf } from "./admin.js";

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

const open = (env: Record<string, string>) => {
  const config = readConfig({ MILLRACE_DATA_DIR: dataDir, ...env });
  const directory = openDataDirectory(dataDir);
  const sealKey = sealKeyOf(config, directory);
  return { config, directory, sealKey, vault: localVault(Buffer.from(sealKey.hex, "hex")) };
};
const start = (env: Record<string, string> = {}) => {
  const { config, directory, sealKey, vault } = open(env);
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

describe("The bootstrap key", () => {
  const given = "mr_given-by-the-environment";
  const kept = () => readFileSync(join(dataDir, "api-key"), "utf8").trim();
  /** Whether a key is the bootstrap key. */
  const works = async (key: string) => {
    const hash = open({}).vault.hash(key);
    return (await stores.access.keys()).some((each) => each.isBootstrap && each.hash === hash);
  };
  /** Rotates it, with a crash at this step. */
  const rotate = async (key: string, crash: "never" | "before the commit" | "after the commit" = "never") => {
    const { directory, vault } = open({});
    const [before] = await stores.access.keys();
    const store = async () => {
      if (crash === "before the commit") throw new Error("crash");
      await stores.access.saveKey({ ...before!, hash: vault.hash(key) });
      if (crash === "after the commit") throw new Error("crash");
    };
    await keptKey(directory)
      .replace(key, store)
      .catch(() => {});
  };

  it("is made once, and kept", async () => {
    const { key, newKey } = await start();
    expect(newKey).toBe(key);
    expect(await start()).toEqual({ key, newKey: undefined });
    expect(kept()).toBe(key);
    expect(await works(key!)).toBe(true);
  });

  it("is replaced by the environment's key once: after a rotation the next start does not restore it", async () => {
    const { key: first } = await start();
    expect((await start({ MILLRACE_API_KEY: given })).key).toBe(given);
    expect([await works(first!), await works(given)]).toEqual([false, true]);
    await rotate("mr_rotated");
    expect((await start({ MILLRACE_API_KEY: given })).key).toBe("mr_rotated");
    expect([await works(given), await works("mr_rotated"), kept()]).toEqual([false, true, "mr_rotated"]);
    expect((await start({ MILLRACE_API_KEY: "mr_another-of-the-environment" })).key).toBe(
      "mr_another-of-the-environment",
    );
    expect(await works("mr_rotated")).toBe(false);
  });

  it.each(["before the commit", "after the commit"] as const)(
    "works after a crash of its rotation %s",
    async (crash) => {
      const { key } = await start();
      await rotate("mr_rotated", crash);
      const left = crash === "before the commit" ? key : "mr_rotated";
      expect((await start()).key).toBe(left);
      expect([kept(), await works(left!), existsSync(join(dataDir, "api-key.next"))]).toEqual([left, true, false]);
    },
  );

  it("is created again if its file is deleted", async () => {
    const { key } = await start();
    rmSync(join(dataDir, "api-key"));
    const { newKey } = await start();
    expect([await works(key!), await works(newKey!)]).toEqual([false, true]);
  });

  it("is not made again in a shared database, whose other servers may hold it, but replaced by the environment's", async () => {
    const { key } = await start();
    stores = { ...stores, shared: {} as NonNullable<Stores["shared"]> };
    rmSync(join(dataDir, "api-key"));
    expect(await start()).toEqual({ key: undefined, newKey: undefined });
    expect(await works(key!)).toBe(true);
    expect((await start({ MILLRACE_API_KEY: given })).key).toBe(given);
    expect([await works(key!), await works(given)]).toEqual([false, true]);
  });
});
