import { mkdir, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { Quota } from "../quota.js";
import type { Mount } from "./mounts.js";
import { type Ran, run } from "./tool.js";

/**
 * XFS and ext4: each directory, with everything below it, belongs to a project of its own with a limit. On ext4, files
 * that were there before do not count.
 */
export function projectQuota({ point, type }: Mount): Quota {
  const tell = (path: string, ...commands: string[]): Promise<Ran> => tellXfsQuota(point, dirname(path), commands);
  return {
    by: `project quotas of ${type}`,

    make: async (path) => void (await mkdir(path, { recursive: true, mode: 0o700 })),

    async bound(path, bytes) {
      const [name, project] = [basename(path), projectOf(path)];
      const isNew = /is not set/.test((await tell(path, `project -c -d 0 -p ${name} ${project}`)).out);
      // ext4 refuses to mark existing files; new ones inherit the mark from the directory
      const depth = isNew && type === "xfs" ? "" : "-d 0 ";
      const belongs = `project ${depth}-s -p ${name} ${project}`;
      const ran = await tell(path, belongs, `limit -p bhard=${bytes} ${project}`, `quota -p -N -b -v ${project}`);
      // it may report a failure and still exit with 0; it also reports sockets and pipes that it skips
      const complaint = ran.err.split("\n").find((line) => line.includes("cannot "));
      if (ran.code !== 0 || complaint !== undefined) return `${complaint ?? ran.why}.`;
      const hard = hardLimit(ran.out);
      return bytes === 0 || hard === bytes ? undefined : `xfs_quota: the limit was not taken (${hard ?? "none"}).`;
    },

    async remove(path) {
      await rm(path, { recursive: true, force: true, maxRetries: 5 });
      await tell(path, `limit -p bhard=0 ${projectOf(path)}`);
    },
  };
}

/** Whether a file system enforces project quotas: its mount options alone do not prove it. */
export async function hasProjectQuotas({ point }: Mount, folder: string): Promise<Ran & { isOn: boolean }> {
  const ran = await tellXfsQuota(point, folder, ["state -p"]);
  return { ...ran, isOn: /Enforcement: ON/.test(ran.out) };
}

/** `-f` makes it work on file systems other than XFS. The administrator's own project files are ignored. */
function tellXfsQuota(point: string, cwd: string, commands: readonly string[]): Promise<Ran> {
  const words = ["-x", "-f", "-D", "/dev/null", "-P", "/dev/null", ...commands.flatMap((each) => ["-c", each]), point];
  return run("xfs_quota", words, cwd);
}

/** A directory's project number, derived from its name; in the upper half, to avoid numbers assigned by hand. */
export function projectOf(path: string): number {
  let hash = 0x811c9dc5; // FNV-1a
  for (const letter of basename(path)) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  return 0x40000000 + (hash % 0x3fffffff);
}

/** The hard limit in bytes, from `device used soft hard …` in KiB; after a long device name the line is wrapped. */
function hardLimit(out: string): number | undefined {
  const [, kib] = /\s\d+\s+\d+\s+(\d+)\s+\d+\s+\[/.exec(out) ?? [];
  return kib === undefined ? undefined : Number(kib) * 1_024;
}
