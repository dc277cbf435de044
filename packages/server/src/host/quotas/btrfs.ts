import { existsSync } from "node:fs";
import { chmod, mkdir, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { Quota } from "../quota.js";
import { run } from "./tool.js";

/** The inode number of every subvolume's root. */
const subvolumeInode = 256;

/** btrfs: each directory is a subvolume whose quota group has a limit. */
export const btrfsQuota: Quota = {
  by: "btrfs quotas",

  async make(path) {
    if (existsSync(path)) return;
    const { code } = await run("btrfs", ["subvolume", "create", basename(path)], dirname(path));
    if (code === 0) await chmod(path, 0o700);
    else await mkdir(path, { recursive: true, mode: 0o700 });
  },

  async bound(path, bytes) {
    if ((await stat(path)).ino !== subvolumeInode) return "It is no subvolume of btrfs: it was made without quotas.";
    const limit = bytes === 0 ? "none" : String(bytes);
    const { code, why } = await run("btrfs", ["qgroup", "limit", limit, basename(path)], dirname(path));
    return code === 0 ? undefined : `btrfs: ${why}.`;
  },

  async remove(path) {
    const isSubvolume = await stat(path).then(
      ({ ino }) => ino === subvolumeInode,
      () => false,
    );
    // this deletes its quota group, too
    if (isSubvolume) await run("btrfs", ["subvolume", "delete", basename(path)], dirname(path));
    await rm(path, { recursive: true, force: true, maxRetries: 5 }); // a subvolume within it keeps btrfs from deleting it
  },
};
