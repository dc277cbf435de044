import { limits } from "../limits/index.js";
import type { Needs } from "../operations/needs.js";
import type { Loop } from "./loop.js";

/** Whether a worker runs, has ended, or has no row any more. */
type Fate = "lives" | "ended" | "unknown";

/** Deletes this host's logs along with their workers' rows, and the oldest logs if they take too much disk. */
export function pruneLogsLoop(
  { registry }: Needs<"registry">,
  prune: (fateOf: (workerId: string) => Fate) => Promise<void>,
): Loop {
  return {
    name: "prune-logs",
    topics: [],
    gapMs: limits.loopGapMs,
    async tick(now) {
      await prune((workerId) => {
        const worker = registry.worker(workerId);
        if (!worker) return "unknown";
        const { endedAt } = worker.row;
        if (endedAt === undefined) return "lives";
        return endedAt > now - limits.workerRowKeptMs ? "ended" : "unknown";
      });
      return now + limits.logPruneMs;
    },
  };
}
