// One at a time: a lock is a folder that names the processes that hold it. Runs before anything is installed, so it
// imports only `node:`.
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cache, readText, SetUpFailure } from "./clone.mjs";

const lockPollMs = 200;
/** The locks that this process holds. */
const held = new Set();

/** Runs `work` while no other process in this clone does work of that name. */
export async function locked(work, name = "set-up") {
  const lock = join(cache, `${name}.lock`);
  try {
    await takeLock(lock);
    return await work();
  } catch (error) {
    if (!["EACCES", "EPERM", "EROFS", "ENOSPC"].includes(error.code)) throw error;
    throw new SetUpFailure(`This folder must be set up, but it cannot be written (${error.message}).`);
  } finally {
    dropLock(lock);
  }
}

async function takeLock(lock) {
  mkdirSync(cache, { recursive: true });
  const mine = `${lock}.${randomUUID()}`;
  mkdirSync(join(mine, holderName(process.pid)), { recursive: true });
  let saidSo = false;
  while (!tryRename(mine, lock)) {
    const holders = holdersOf(lock);
    if (holders.length === 0) continue;
    const living = holders.find((holder) => holderName(holder.split("-")[0]) === holder);
    if (living === undefined) {
      // The name says whose lock it was and stays taken: of two processes that clear the same lock, one fails here
      // instead of clearing the next owner's lock.
      tryRename(lock, `${lock}.left-by-${holders.join("+")}`);
      continue;
    }
    if (!saidSo) console.error(`Waiting for process ${living.split("-")[0]}, which is setting up this folder …`);
    saidSo = true;
    await sleep(lockPollMs);
  }
  held.add(lock);
}

/** Ends all holds of this process. */
export function dropLocks() {
  for (const lock of held) dropLock(lock);
}

function dropLock(lock) {
  if (!held.delete(lock)) return;
  // Moved first: a folder that is being emptied would look like a lock without a holder.
  const gone = `${lock}.${randomUUID()}`;
  if (tryRename(lock, gone)) rmSync(gone, { recursive: true, force: true });
}

function holdersOf(lock) {
  try {
    return readdirSync(lock).sort();
  } catch {
    return [];
  }
}

/** `pid-start`: a process id is reused, but not with the same start time. Undefined for a process that has ended. */
function holderName(pid) {
  if (!existsSync("/proc/self/stat")) return isAlive(Number(pid)) ? `${pid}-0` : undefined;
  const stat = readText(`/proc/${pid}/stat`);
  const [state, ...rest] = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  return state === undefined || state === "Z" ? undefined : `${pid}-${rest[18]}`;
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

function tryRename(from, to) {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST", "ENOENT", "EPERM"].includes(error.code)) return false;
    throw error;
  }
}

/** Holds the locks that this process has until this child has ended too. */
export function holdWith(pid) {
  for (const lock of held) mkdirSync(join(lock, holderName(pid) ?? "ended"), { recursive: true });
}
