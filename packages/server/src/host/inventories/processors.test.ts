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

describe("The number of usable processors", () => {
  it.each([
    ["is the machine's without control groups", "", {}, all],
    ["is the machine's if the group has no quota", "0::/\n", { "cpu.max": "max 100000\n" }, all],
    ["is the machine's if a version 1 group has no quota", "3:cpu,cpuacct:/\n", v1("-1"), all],
    ["is the quota", "0::/\n", { "cpu.max": "100000 100000\n" }, 1],
    ["is at least one", "0::/\n", { "cpu.max": "20000 100000\n" }, 1],
    [
      "is bounded by the groups around it",
      "0::/a/b\n",
      { "a/cpu.max": "100000 100000\n", "a/b/cpu.max": "max 100000" },
      1,
    ],
    ["is the quota of a version 1 group", "3:cpu,cpuacct:/\n", v1("100000"), 1],
    ["is the quota even if a container does not see its group's path", "2:cpu,cpuacct:/docker/0123\n", v1("100000"), 1],
    ["is not bounded by the groups of other controllers", "2:memory:/\n", v1("100000"), all],
    ["is not bounded by invalid values", "0::/../..\n", { "cpu.max": "lots of\n" }, all],
  ])("%s", (_, membership, files, expected) => {
    expect(processors(groups(membership, files))).toBe(expected);
  });
});

it("The memory is no more than the machine has", () => {
  expect(memoryMib()).toBeGreaterThan(0);
  expect(memoryMib()).toBeLessThanOrEqual(totalmem() / 2 ** 20);
});
