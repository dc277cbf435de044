import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join, posix } from "node:path";

/** Where Linux describes control groups. */
export interface GroupFiles {
  readonly membership: string;
  readonly root: string;
}
const linux: GroupFiles = { membership: "/proc/self/cgroup", root: "/sys/fs/cgroup" };

/** Usable processors: the machine's, limited by a container's quota. */
export function processors(files: GroupFiles = linux): number {
  return Math.max(1, Math.floor(Math.min(availableParallelism(), quota(files))));
}

/** Usable memory in MiB: the machine's, or its container's limit. */
export function memoryMib(): number {
  const limit = process.constrainedMemory?.() ?? 0;
  const total = totalmem();
  return Math.floor((limit > 0 ? Math.min(limit, total) : total) / 2 ** 20);
}

/** The smallest CPU quota of our control group and its ancestors, in processors. */
function quota({ membership, root }: GroupFiles): number {
  let least = Number.POSITIVE_INFINITY;
  for (const line of (text(membership) ?? "").split("\n")) {
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    // cgroup v2 has a single tree without controller names
    const trees = controllers === "" ? [root] : controllers.split(",").includes("cpu") ? trees1(root, controllers) : [];
    for (const tree of trees) for (const folder of upwards(path)) least = Math.min(least, quotaOf(join(tree, folder)));
  }
  return least;
}

const trees1 = (root: string, controllers: string) => [join(root, controllers), join(root, "cpu")];

/**
 * A group and its ancestors. In a container its own path may not be visible, but then the root is the container's
 * group.
 */
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

/** The share of that memory that is free now. */
export const freeMemoryShare = (): number => process.availableMemory() / (memoryMib() * 2 ** 20);
