import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { topics } from "../../bell.js";
import { earliest } from "../../domain/earliest.js";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../../operations/needs.js";
import { crashPause, handlerFolder } from "../../operations/workers/crash-pause.js";

type Watching = Needs<"registry" | "clock" | "bell">;

/** A pause, and the handler's folder as it was when first looked at. */
interface Seen {
  readonly failedAt: number | undefined;
  readonly newest: number | undefined;
  lookAt: number;
}

/**
 * Watches the folders of local handlers whose workers fail at start. If a folder changes, its endpoint tries again at
 * once, so that a repaired handler need not wait for the pause to end. Returns when to look next.
 */
export function handlerWatch(needs: Watching): (now: number) => Promise<number | undefined> {
  const seen = new Map<number, Seen>();
  /** By endpoint, how many pauses a change has ended since a worker last started well. */
  const ended = new Map<number, number>();

  /** Ends a pause. The count of failures is kept: if this start fails too, the next pause is just as long. */
  async function endPause(endpoint: Endpoint): Promise<void> {
    const { no, failedStarts, verdict } = endpoint;
    await needs.registry.noteStart(endpoint, servingVersion(endpoint), { failedStarts, at: 0, verdict, isAlone: true });
    seen.delete(no);
    ended.set(no, (ended.get(no) ?? 0) + 1);
    needs.bell.ring(topics.demand(no));
  }

  /** Returns when to look at this endpoint's folder next. */
  async function watch(endpoint: Endpoint, now: number): Promise<number | undefined> {
    const { no, failedStarts, failedAt } = endpoint;
    const folder = handlerFolder(needs, endpoint);
    const isWatched = failedStarts > 0 && endpoint.deletedAt === undefined && folder !== undefined;
    if (!isWatched) ended.delete(no);
    if (!isWatched || crashPause(needs, endpoint).leftMs <= 0) {
      seen.delete(no);
      return undefined;
    }
    const before = seen.get(no);
    if (!before || before.failedAt !== failedAt) {
      // a program that writes to its own folder would end every pause, so each must last longer than the one before
      const patienceMs = Math.min(limits.handlerLookMs * 2 ** (ended.get(no) ?? 0), limits.handlerPatienceMsMax);
      seen.set(no, { failedAt, newest: newestChange(folder), lookAt: now + patienceMs });
    } else if (now >= before.lookAt) {
      before.lookAt = now + limits.handlerLookMs;
      if (newestChange(folder) !== before.newest) await endPause(endpoint);
    }
    return seen.get(no)?.lookAt;
  }

  return async (now) => {
    let next: number | undefined;
    for (const endpoint of needs.registry.endpoints()) next = earliest(next, await watch(endpoint, now));
    return next;
  };
}

/** When a file in this folder last changed, by the file system's clock; undefined if none can be read. */
function newestChange(folder: string): number | undefined {
  const folders = [folder];
  let newest: number | undefined;
  let left: number = limits.handlerEntriesMax;
  for (const each of folders) {
    for (const name of namesIn(each)) {
      if (/^\.|^__pycache__$|^node_modules$/.test(name)) continue; // nobody repairs these, and programs write to them
      if (left-- === 0) return newest;
      const stat = statSync(join(each, name), { throwIfNoEntry: false });
      if (stat?.isDirectory()) folders.push(join(each, name));
      else if (stat?.isFile()) newest = Math.max(newest ?? 0, stat.mtimeMs, stat.ctimeMs);
    }
  }
  return newest;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
