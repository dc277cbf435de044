import { existsSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";

/** Room for finishing, cancelling and cleaning while the disk is full: new jobs are refused before, and a file is given up then. */
export interface DiskReserve {
  /** Whether new jobs are taken: the disk has more than the reserve left. */
  hasRoom(): boolean;
  /** Gives up the file; false where it was given up already. */
  release(): boolean;
}

/** The reserve of an in-memory store: never needed. */
export const noReserve: DiskReserve = { hasRoom: () => true, release: () => false };

/** The reserve beside a database file. The file system is asked at most once a second. */
export function diskReserve(database: string): DiskReserve {
  const file = join(dirname(database), "reserve");
  let askedAt = Number.NEGATIVE_INFINITY;
  let room = true;
  const look = () => {
    const { bavail, bsize } = statfsSync(dirname(database));
    room = bavail * bsize > limits.diskReserveBytes;
    if (!room || existsSync(file)) return;
    try {
      // real bytes: a hole would hold no room
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
