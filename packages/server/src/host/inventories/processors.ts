import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join, posix } from "node:path";

/** Where Linux tells of control groups. */
export interface GroupFiles {
  readonly membership: string;
  readonly root: string;
}
const linux: GroupFiles = { membership: "/proc/self/cgroup", root: "/sys/fs/cgroup" };

/** Processors that may be used at once: what the machine has, less what a container's quota leaves of it. */
export function processors(files: GroupFiles = linux): number {
  return Math.max(1, Math.floor(Math.min(availableParallelism(), quota(files))));
}

/** Memory that may be used, in MiB: the machine's, or its container's limit. */
export function memoryMib(): number {
  const limit = process.constrainedMemory?.() ?? 0;
  const total = totalmem();
  return Math.floor((limit > 0 ? Math.min(limit, total) : total) / 2 ** 20);
}

/** The least quota of the group that we are in and of those around it, in processors. */
function quota({ membership, root }: GroupFiles): number {
  let least = Number.POSITIVE_INFINITY;
  for (const line of (text(membership) ?? "").split("\n")) {
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    // the second version has one tree and no names
    const trees = controllers === "" ? [root] : controllers.split(",").includes("cpu") ? trees1(root, controllers) : [];
    for (const tree of trees) for (const folder of upwards(path)) least = Math.min(least, quotaOf(join(tree, folder)));
  }
  return least;
}

const trees1 = (root: string, controllers: string) => [join(root, controllers), join(root, "cpu")];

/** A group and all around it; in a container its own may not be seen, but the root is then its own. */
function upwards(path: string): string[] {
  const folders = [posix.normalize(`/${path}`)];
  while (folders[0] !== "/") folders.unshift(posix.dirname(folders[0] as string));
  return folders;
}

function quotaOf(folder: string): number {
  const [most, period] = (text(join(folder, "cpu.max")) ?? "").trim().split(" ");
  if (most && period) return most === "max" ? Number.POSITIVE_INFINITY : share(most, period);
  return share(text(join(folder, "cpu.cfs_quota_us")), text(join(folder, "cpu.cfs_period_us")));
}

function share(most: string | undefined, period: string | undefined): number {
  const processors = Number(most?.trim()) / Number(period?.trim());
  return processors > 0 ? processors : Number.POSITIVE_INFINITY;
}

function text(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** The share of that which is free now. */
export const freeMemoryShare = (): number => process.availableMemory() / (memoryMib() * 2 ** 20);
