import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import type { Database } from "./driver.js";
import { isFatal } from "./failures.js";

const pieceBytes = 2 ** 20;

/**
 * Writes a database's log over itself, and syncs it. After a sync that failed the system may show bytes that never reached
 * the disk, and that no later sync brings there: commits that follow them in the log would be lost with them.
 * Only for who holds the database alone, before it is opened.
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
 * Brings what no reader needs of a database's log into its file, and returns how many pages are left. Throws where the disk
 * has failed. Called by ourselves: SQLite says nothing when a sync fails in a checkpoint of its own.
 */
export function bringLog(db: Database): number {
  try {
    const { busy, log, checkpointed } = db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
    return busy ? Number.POSITIVE_INFINITY : log - checkpointed;
  } catch (error) {
    if (isFatal(error)) throw error;
    return Number.POSITIVE_INFINITY; // on a full disk the log keeps what it has
  }
}
