import { limits } from "../limits/index.js";
import { clearEndpoint } from "../operations/endpoints/save-endpoint.js";
import type { Parts } from "../operations/needs.js";
import type { Loop } from "./loop.js";

/** Ends the jobs of deleted endpoints whose deletion stopped halfway, because its server ended. */
export function clearDeletedLoop(needs: Parts): Loop {
  let clear: ReadonlySet<number> = new Set();
  return {
    name: "clear-deleted",
    topics: [],
    gapMs: limits.netMs,
    async tick(now, signal) {
      const seen = new Set<number>();
      for (const { no, deletedAt } of needs.registry.endpoints()) {
        if (deletedAt === undefined || signal.aborted) continue;
        const { waiting, running } = clear.has(no) ? { waiting: 0, running: 0 } : await needs.tallies.tally(no);
        if (waiting + running > 0) await clearEndpoint(needs, no);
        else seen.add(no);
      }
      clear = seen;
      return now + limits.netMs;
    },
  };
}
