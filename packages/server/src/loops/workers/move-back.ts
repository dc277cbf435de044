import { isThrottled } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { whyLeaveCluster } from "../../operations/workers/place-worker.js";
import { stopWorker } from "../../operations/workers/worker-life.js";

type Moving = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "here">;
type Look = (mine: readonly LiveWorker[], now: number) => Promise<number | undefined>;

/**
 * Stops a worker for which its cluster has found no room for a while, if a machine has room now, or another cluster may
 * have: its successor is placed there. The next one follows after a while, when that room is taken, and only if no worker waits for it already. The
 * result returns when to look next.
 */
export function movesBack(needs: Moving): Look {
  let movedAt = Number.NEGATIVE_INFINITY;
  const isLate = ({ row, unplacedSince }: LiveWorker, now: number) =>
    row.wanted === "running" && unplacedSince !== undefined && now - unplacedSince >= limits.clusterRoomMs;

  return async (mine, now) => {
    if (!mine.some(({ unplacedSince }) => unplacedSince !== undefined)) return undefined;
    const isAwaited = needs.registry.liveWorkers().some(({ row }) => isThrottled(row) && row.wanted === "running");
    const late = isAwaited || now - movedAt < limits.clusterRoomMs ? [] : mine.filter((worker) => isLate(worker, now));
    // workers of a version find the same
    const seen = new Set<string>();
    for (const worker of late.sort((a, b) => a.row.no - b.row.no)) {
      const version = `${worker.row.endpointNo}/${worker.row.version}`;
      if (seen.has(version)) continue;
      seen.add(version);
      const why = await whyLeaveCluster(needs, worker);
      if (why === undefined || !isLate(worker, now)) continue;
      await stopWorker(needs, worker, why, needs.here.stopGraceMs);
      movedAt = now;
      break;
    }
    return now + limits.netMs;
  };
}
