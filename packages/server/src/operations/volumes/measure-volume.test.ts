import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { measureFolder } from "./measure-volume.js";

let folder: string;
const stays = new AbortController().signal;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-volume-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const mib = 2 ** 20;
const file = (name: string, bytes = mib) => writeFileSync(join(folder, name), Buffer.alloc(bytes, 1));
const measure = (entries = 1_000, folders = 1_000) => measureFolder(folder, stays, { entries, folders });

/** Allows for the space that directories themselves use. */
function expectAbout(bytes: number, expected: number): void {
  expect([bytes >= expected, bytes < expected + mib / 4, bytes]).toEqual([true, true, bytes]);
}

describe("A volume's content", () => {
  it("is zero if it is empty", async () => {
    expect(await measure()).toEqual({ bytes: 0, isWhole: true });
  });

  it("is counted in all its folders", async () => {
    file("a");
    mkdirSync(join(folder, "b/c"), { recursive: true });
    file("b/c/d", 2 * mib);
    const { bytes, isWhole } = await measure();
    expectAbout(bytes, 3 * mib);
    expect(isWhole).toBe(true);
  });

  it("counts a file with two names once, and never the target of a symbolic link", async () => {
    file("a");
    linkSync(join(folder, "a"), join(folder, "again"));
    symlinkSync("/", join(folder, "everything"));
    symlinkSync(folder, join(folder, "round"));
    expectAbout((await measure()).bytes, mib);
  });

  it("is the space used on disk, not the apparent size", async () => {
    file("sparse", 4_096);
    truncateSync(join(folder, "sparse"), 1_000 * mib);
    expect((await measure()).bytes).toBeLessThan(mib);
  });

  it("is reported as a minimum if there is more than may be counted", async () => {
    for (let n = 0; n < 10; n++) file(`f${n}`, 4_096);
    expect(await measure(10)).toMatchObject({ isWhole: true });
    expect(await measure(9)).toMatchObject({ isWhole: false, bytes: 9 * 4_096 });
  });

  it("is reported as a minimum if a part cannot be read", async () => {
    file("open");
    mkdirSync(join(folder, "closed"), { mode: 0 });
    chmodSync(folder, 0o755);
    // Root can read everything.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    const { bytes, isWhole } = await measure().finally(() => void (isRoot && process.seteuid?.(0)));
    expectAbout(bytes, mib);
    expect(isWhole).toBe(false);
    chmodSync(join(folder, "closed"), 0o700);
  });

  it("is reported as a minimum if too many folders wait to be counted", async () => {
    for (let n = 0; n < 10; n++) mkdirSync(join(folder, `d${n}`));
    for (let n = 0; n < 10; n++) file(`d${n}/f`, 4_096);
    expect(await measure(1_000, 10)).toMatchObject({ isWhole: true });
    const { bytes, isWhole } = await measure(1_000, 9);
    expect(isWhole).toBe(false);
    expect((await measure()).bytes - bytes).toBe(4_096);
  });

  it("is complete below a path of thousands of characters", async () => {
    const names = Array.from({ length: 15 }, () => "n".repeat(250));
    mkdirSync(join(folder, ...names), { recursive: true });
    writeFileSync(join(folder, ...names, "deep"), Buffer.alloc(mib, 1));
    const { bytes, isWhole } = await measure();
    expectAbout(bytes, mib);
    expect(isWhole).toBe(true);
  });

  it("never includes the target of a link that replaced a folder meanwhile", async () => {
    mkdirSync(join(folder, "volume/swapped"), { recursive: true });
    mkdirSync(join(folder, "other"));
    file("other/big", 4 * mib);
    // Its signal is checked between listing the folder and opening it.
    let looks = 0;
    const swapping = {
      ...stays,
      get aborted() {
        if (++looks === 3) {
          rmdirSync(join(folder, "volume/swapped"));
          symlinkSync(join(folder, "other"), join(folder, "volume/swapped"));
        }
        return false;
      },
    } as AbortSignal;
    const { bytes, isWhole } = await measureFolder(join(folder, "volume"), swapping);
    expect(looks).toBeGreaterThan(2);
    expect([bytes < mib, isWhole]).toEqual([true, false]);
  });

  it("is given up when the server stops", async () => {
    file("a");
    expect(await measureFolder(folder, AbortSignal.abort())).toEqual({ bytes: 0, isWhole: false });
  });
});
