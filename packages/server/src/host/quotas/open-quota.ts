import { readFile, realpath, statfs } from "node:fs/promises";
import type { Quota } from "../quota.js";
import { btrfsQuota } from "./btrfs.js";
import { type Mount, mountOf } from "./mounts.js";
import { noQuota } from "./no-quota.js";
import { hasProjectQuotas, projectQuota } from "./projects.js";
import { run } from "./tool.js";

const btrfsType = 0x9123683e;
const howTo = "docs/guide/volumes.md says how to set this up.";

/**
 * The quota for directories in `folder`, by its file system. Never rejects: a quota that enforces no limits says why.
 */
export async function openQuota(folder: string): Promise<Quota> {
  if (process.platform !== "linux") return noQuota("Directories can have quotas only on Linux.");
  if (process.getuid?.() !== 0) return noQuota("Only a server that runs as root may set quotas.");
  try {
    if ((await statfs(folder)).type === btrfsType) return await onBtrfs(folder);
    const mount = mountOf(await readFile("/proc/self/mountinfo", "utf8"), await realpath(folder));
    return await onProjects(folder, mount);
  } catch (error) {
    return noQuota(`The file system of the volumes could not be inspected (${(error as Error).message}).`);
  }
}

async function onBtrfs(folder: string): Promise<Quota> {
  const { code, why } = await run("btrfs", ["qgroup", "show", "."], folder);
  return code === 0 ? btrfsQuota : noQuota(`btrfs bounds nothing here (${why}): ${howTo}`);
}

async function onProjects(folder: string, mount: Mount | undefined): Promise<Quota> {
  const type = mount?.type ?? "unknown";
  if (mount === undefined || !mount.hasProjects) {
    return noQuota(`The file system of the volumes (${type}) cannot limit directories: ${howTo}`);
  }
  const { code, why, isOn } = await hasProjectQuotas(mount, folder);
  if (code !== 0) return noQuota(`xfs_quota (package xfsprogs) could not be run: ${why}.`);
  return isOn ? projectQuota(mount) : noQuota(`Project quotas are not enforced on ${mount.type} here: ${howTo}`);
}
