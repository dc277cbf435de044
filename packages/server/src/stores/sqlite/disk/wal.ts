import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import type { Database } from "../driver.js";
import { isFatal } from "../failures.js";

const pieceBytes = 2 ** 20;

/**
 * Rewrites a database's log in place and syncs it. After a failed sync the system may show bytes that never reached the
 * disk and that no later sync will write; commits that follow them in the log would be lost with them. Call it only
 * before the database is opened, and only as its sole user.
 */
export function rewriteWal(database: string): void {
  const path = `${database}-wal`;
  if (!existsSync(path)) return;
  const file = openSync(path, "r+");
  try {
    const piece = Buffer.alloc(pieceBytes);
    for (let at = 0; ; ) {
      const read = readSync(file, piece, 0, piece.length, at);
      if (read === 0) break;
      for (let done = 0; done < read; ) done += writeSync(file, piece, done, read - done, at + done);
      at += read;
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Checkpoints whatever part of a database's log no reader needs, and returns how many pages are left. Throws if the
 * disk has failed. We call it ourselves because SQLite does not report a sync that fails in an automatic checkpoint.
 */
export function bringLog(db: Database): number {
  try {
    const { busy, log, checkpointed } = db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
    return busy ? Number.POSITIVE_INFINITY : log - checkpointed;
  } catch (error) {
    if (isFatal(error)) throw error;
    return Number.POSITIVE_INFINITY; // on a full disk the log keeps its content
  }
}
