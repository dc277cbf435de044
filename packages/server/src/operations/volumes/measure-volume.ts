import { constants, type Dir } from "node:fs";
import { type FileHandle, lstat, open, opendir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Signal } from "../../clock.js";
import type { VolumeUse } from "../../domain/endpoints/volume.js";
import { limits } from "../../limits/index.js";

/** A directory still to be read. It keeps only its own name: full paths of many would fill the memory. */
interface Folder {
  readonly parent: Folder | undefined;
  readonly name: string;
  readonly ino: number;
}

const bounds = { entries: limits.volumeEntriesMax, folders: limits.volumeFoldersMax };

/**
 * Adds up the disk use of the files below a directory, one entry at a time, so that other work gets its turn. Follows
 * no links, counts a file with several names once, stays on one file system, and stops at its bounds. Rejects if the
 * directory itself cannot be inspected.
 */
export async function measureFolder(
  root: string,
  signal: Signal,
  max: { readonly entries: number; readonly folders: number } = bounds,
): Promise<Omit<VolumeUse, "at">> {
  const { dev, ino } = await lstat(root);
  const count = { bytes: 0, isWhole: true };
  const waiting: Folder[] = [{ parent: undefined, name: root, ino }];
  const seen = new Set<number>();
  let entries = 0;
  const counted = async (folder: Folder, place: string, name: string) => {
    const facts = await lstat(join(place, name)).catch((error) => void (count.isWhole &&= isGone(error, name)));
    if (!facts || facts.dev !== dev || isCountedAgain(seen, facts)) return;
    count.bytes += facts.blocks * 512;
    if (!facts.isDirectory()) return;
    if (waiting.length < max.folders) waiting.push({ parent: folder, name, ino: facts.ino });
    else count.isWhole = false;
  };
  for (let folder = waiting.pop(); folder !== undefined && !signal.aborted; folder = waiting.pop()) {
    let opened: Opened | undefined;
    try {
      opened = await openFolder(folder, dev);
      for await (const { name } of opened.dir) {
        if (++entries > max.entries) return { ...count, isWhole: false };
        if (entries % limits.volumeTurn === 0) await setImmediate();
        if (signal.aborted) break;
        await counted(folder, opened.place, name);
      }
    } catch (error) {
      count.isWhole &&= isGone(error, folder.name); // a container's root user may have closed it to us
    } finally {
      await opened?.handle.close();
    }
  }
  return { ...count, isWhole: count.isWhole && !signal.aborted };
}

interface Opened {
  readonly handle: FileHandle;
  readonly dir: Dir;
  /** The path to read its entries by. On Linux it stays valid when the directory's own path changes. */
  readonly place: string;
}

/**
 * Opens a directory found earlier. Rejects if something else has taken its place, such as a link to another directory.
 */
async function openFolder(folder: Folder, dev: number): Promise<Opened> {
  const path = pathOf(folder);
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const facts = await handle.stat();
    if (facts.dev !== dev || facts.ino !== folder.ino) throw new Error("it is another folder by now");
    const place = process.platform === "linux" ? `/proc/self/fd/${handle.fd}` : path;
    return { handle, dir: await opendir(place), place };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function pathOf(folder: Folder): string {
  const names: string[] = [];
  for (let each: Folder | undefined = folder; each; each = each.parent) names.push(each.name);
  return join(...names.reverse());
}

/** A file deleted meanwhile takes no space. A name that is not UTF-8 is not found either, but does take space. */
const isGone = (error: unknown, name: string) =>
  (error as NodeJS.ErrnoException).code === "ENOENT" && !name.includes("\ufffd");

function isCountedAgain(seen: Set<number>, facts: { nlink: number; ino: number; isDirectory(): boolean }): boolean {
  if (facts.nlink < 2 || facts.isDirectory()) return false;
  const again = seen.has(facts.ino);
  seen.add(facts.ino);
  return again;
}
