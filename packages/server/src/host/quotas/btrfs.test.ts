import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Quota } from "../quota.js";
import { openQuota } from "./open-quota.js";

const mib = 2 ** 20;
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
const root = (program: string, ...words: string[]) =>
  execFileSync(program, words, { env, encoding: "utf8", stdio: "pipe" });

/** Writes until the file system refuses; returns how much it accepted, in MiB. */
function fill(path: string): number {
  mkdirSync(path, { recursive: true });
  for (let written = 0; ; written++) {
    try {
      // Holes and repeated data might take no space.
      writeFileSync(join(path, `part-${written}`), Buffer.alloc(mib, written + 1), { flush: true });
    } catch (error) {
      expect((error as NodeJS.ErrnoException).errno).toBe(-122); // EDQUOT, for which Node has no name
      return written;
    }
    if (written === 60) return written;
  }
}

describe("on btrfs with quotas, a volume's directory", () => {
  const home = mkdtempSync(join(tmpdir(), "millrace-btrfs-"));
  const volumes = join(home, "mount", "volumes with a space");
  let quota: Quota;

  beforeAll(async () => {
    const image = join(home, "image");
    writeFileSync(image, "");
    truncateSync(image, 256 * mib);
    root("mkfs.btrfs", "-q", image);
    mkdirSync(join(home, "mount"));
    root("mount", "-o", "loop", image, join(home, "mount"));
    mkdirSync(volumes);
    expect(await (await openQuota(volumes)).bound(volumes, mib)).toMatch(
      /btrfs bounds nothing here .*quotas? not enabled/,
    );
    root("btrfs", "quota", "enable", join(home, "mount"));
    quota = await openQuota(volumes);
  }, 60_000);
  afterAll(() => {
    root("umount", join(home, "mount"));
    rmSync(home, { recursive: true });
  });

  it("holds no more than its limit, whichever process writes, at any depth", async () => {
    expect(quota.by).toBe("btrfs quotas");
    const path = join(volumes, "volume00000001");
    await quota.make(path);
    await quota.make(path); // it exists already
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(await quota.bound(path, 20 * mib)).toBeUndefined();
    const written = fill(join(path, "deep", "below"));
    expect(written).toBeGreaterThan(16);
    expect(written).toBeLessThanOrEqual(20);
  });

  it("holds more when its limit was raised, and anything once it was lifted", async () => {
    const path = join(volumes, "volume00000002");
    await quota.make(path);
    await quota.bound(path, 5 * mib);
    expect(fill(join(path, "a"))).toBeLessThanOrEqual(5);
    expect(await quota.bound(path, 30 * mib)).toBeUndefined();
    const more = fill(join(path, "b"));
    expect(more).toBeGreaterThan(18);
    expect(more).toBeLessThan(30);
    expect(await quota.bound(path, 0)).toBeUndefined();
    expect(fill(join(path, "c"))).toBe(60);
    await quota.remove(path);
  });

  it("is removed with all its content, including nested subvolumes", async () => {
    const path = join(volumes, "volume00000003");
    await quota.make(path);
    writeFileSync(join(path, "weights"), "1");
    root("btrfs", "subvolume", "create", join(path, "nested"));
    writeFileSync(join(path, "nested", "weights"), "1");
    await quota.remove(path);
    expect(existsSync(path)).toBe(false);
    await quota.remove(path);
  });

  it("that was made without quotas is not bounded, with that reason", async () => {
    const path = join(volumes, "volume00000004");
    mkdirSync(path);
    expect(await quota.bound(path, mib)).toBe("It is no subvolume of btrfs: it was made without quotas.");
    await quota.remove(path);
    expect(existsSync(path)).toBe(false);
  });
});
