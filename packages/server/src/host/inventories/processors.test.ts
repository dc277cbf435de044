import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { memoryMib, processors } from "./processors.js";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A machine's control groups as files. */
function groups(membership: string, files: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), "millrace-groups-"));
  folders.push(root);
  writeFileSync(join(root, "membership"), membership);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return { membership: join(root, "membership"), root };
}

const all = availableParallelism();
const v1 = (quota: string, folder = "cpu,cpuacct") => ({
  [`${folder}/cpu.cfs_quota_us`]: `${quota}\n`,
  [`${folder}/cpu.cfs_period_us`]: "100000\n",
});

describe("The processors that may be used", () => {
  it.each([
    ["are all where there are no groups", "", {}, all],
    ["are all where the group has no quota", "0::/\n", { "cpu.max": "max 100000\n" }, all],
    ["are all where the old kind has none", "3:cpu,cpuacct:/\n", v1("-1"), all],
    ["are what a quota leaves", "0::/\n", { "cpu.max": "100000 100000\n" }, 1],
    ["are one at least", "0::/\n", { "cpu.max": "20000 100000\n" }, 1],
    [
      "are bounded by the groups around it",
      "0::/a/b\n",
      { "a/cpu.max": "100000 100000\n", "a/b/cpu.max": "max 100000" },
      1,
    ],
    ["are what a quota of the old kind leaves", "3:cpu,cpuacct:/\n", v1("100000"), 1],
    ["are so also where a container does not see its group's path", "2:cpu,cpuacct:/docker/0123\n", v1("100000"), 1],
    ["are not bounded by what is not theirs", "2:memory:/\n", v1("100000"), all],
    ["are not bounded by nonsense", "0::/../..\n", { "cpu.max": "lots of\n" }, all],
  ])("%s", (_, membership, files, expected) => {
    expect(processors(groups(membership, files))).toBe(expected);
  });
});

it("The memory is no more than the machine has", () => {
  expect(memoryMib()).toBeGreaterThan(0);
  expect(memoryMib()).toBeLessThanOrEqual(totalmem() / 2 ** 20);
});
