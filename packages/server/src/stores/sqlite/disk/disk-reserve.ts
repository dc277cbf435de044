import { existsSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

/**
 * Room to finish, cancel and delete jobs on a full disk: new jobs are refused early, and finally a reserve file is
 * deleted.
 */
export interface DiskReserve {
  /** Whether new jobs are accepted: more than the reserve is free on the disk. */
  hasRoom(): boolean;
  /** Deletes the file; false if it was deleted already. */
  release(): boolean;
}

/** The reserve of an in-memory store, which never needs one. */
export const noReserve: DiskReserve = { hasRoom: () => true, release: () => false };

/** The reserve beside a database file. Checks the file system at most once a second. */
export function diskReserve(database: string): DiskReserve {
  const file = join(dirname(database), "reserve");
  let askedAt = Number.NEGATIVE_INFINITY;
  let room = true;
  const look = () => {
    const { bavail, bsize } = statfsSync(dirname(database));
    room = bavail * bsize > limits.diskReserveBytes;
    if (!room || existsSync(file)) return;
    try {
      // write real bytes: a sparse file would reserve nothing
      writeFileSync(file, Buffer.alloc(limits.diskReserveFileBytes, 1), { mode: 0o600 });
    } catch {
      rmSync(file, { force: true });
      room = false;
    }
  };
  look();
  return {
    hasRoom() {
      if (realTime.monotonicMs() - askedAt > limits.diskLookMs) {
        askedAt = realTime.monotonicMs();
        look();
      }
      return room;
    },
    release() {
      if (!existsSync(file)) return false;
      rmSync(file, { force: true });
      room = false;
      return true;
    },
  };
}
