import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { topics } from "../bell.js";
import { servingVersion } from "../domain/endpoint.js";
import { limits } from "../limits.js";
import { crashPause, handlerFolder } from "../operations/crash-pause.js";
import type { Needs } from "../operations/needs.js";

type Watching = Needs<"registry" | "clock" | "bell">;

/** A pause, and the handler's folder as it was at our first look. */
interface Seen {
  readonly failedAt: number | undefined;
  readonly newest: number | undefined;
}

/**
 * Looks at the folders of local handlers whose workers end at their start. One that has changed since is tried at once: who
 * repairs a handler need not wait for the end of a pause. Returns when to look next.
 */
export function handlerWatch(needs: Watching): (now: number) => Promise<number | undefined> {
  const seen = new Map<number, Seen>();
  return async (now) => {
    for (const endpoint of needs.registry.endpoints()) {
      const { no, failedStarts, failedAt, verdict } = endpoint;
      const folder = handlerFolder(needs, endpoint);
      const isPausing = failedStarts > 0 && endpoint.deletedAt === undefined && crashPause(needs, endpoint).leftMs > 0;
      if (!isPausing || folder === undefined) {
        seen.delete(no);
        continue;
      }
      const newest = newestChange(folder);
      const before = seen.get(no);
      if (!before || before.failedAt !== failedAt) seen.set(no, { failedAt, newest });
      else if (newest !== before.newest) {
        // how often it failed is kept: where this does not help either, the next pause is as long
        await needs.registry.noteStart(endpoint, servingVersion(endpoint), { failedStarts, at: 0, verdict });
        seen.delete(no);
        needs.bell.ring(topics.demand(no));
      }
    }
    return seen.size > 0 ? now + limits.handlerLookMs : undefined;
  };
}

/** When a file of this folder was last changed, as the file system says; undefined where none can be read. */
function newestChange(folder: string): number | undefined {
  const folders = [folder];
  let newest: number | undefined;
  let left: number = limits.handlerEntriesMax;
  for (const each of folders) {
    for (const name of namesIn(each)) {
      if (/^\.|^__pycache__$|^node_modules$/.test(name)) continue; // nobody repairs those, and programs write there
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
