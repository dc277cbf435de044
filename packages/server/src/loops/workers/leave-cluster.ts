import { isThrottled } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { hasMachineFor, leaving, nextInClusters } from "../../operations/workers/place-worker.js";
import { stopWorker } from "../../operations/workers/worker-life.js";

type Moving = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "here">;
type Look = (mine: readonly LiveWorker[], now: number) => Promise<number | undefined>;

const versionOf = ({ row }: LiveWorker): string => `${row.endpointNo}/${row.version}`;

/**
 * Stops workers that wait in vain for a node of their cluster, so that their successors are placed where there is room.
 * The result returns when to look next.
 */
export function leavesCluster(needs: Moving): Look {
  const toMachines = movesToMachines(needs);
  return async (mine, now) => {
    if (!mine.some(({ unplacedSince }) => unplacedSince !== undefined)) return undefined;
    await toMachines(mine, now);
    await moveOn(needs, mine, now);
    return now + limits.netMs;
  };
}

/**
 * To a machine that has room: one worker, and the next one after a while, when that room is taken, and only if no worker
 * waits for it already.
 */
function movesToMachines(needs: Moving): (mine: readonly LiveWorker[], now: number) => Promise<void> {
  let movedAt = Number.NEGATIVE_INFINITY;
  const isLate = ({ row, unplacedSince }: LiveWorker, now: number) =>
    row.wanted === "running" && unplacedSince !== undefined && now - unplacedSince >= limits.clusterRoomMs;

  return async (mine, now) => {
    const isAwaited = needs.registry.liveWorkers().some(({ row }) => isThrottled(row) && row.wanted === "running");
    const late = isAwaited || now - movedAt < limits.clusterRoomMs ? [] : mine.filter((worker) => isLate(worker, now));
    // workers of a version find the same
    const seen = new Set<string>();
    for (const worker of late.sort((a, b) => a.row.no - b.row.no)) {
      if (seen.has(versionOf(worker))) continue;
      seen.add(versionOf(worker));
      if (!(await hasMachineFor(needs, worker)) || !isLate(worker, now)) continue;
      const why = leaving[worker.fullSince === undefined ? "waiting" : "full"];
      await stopWorker(needs, worker, `${why}, and a machine has room`, needs.here.stopGraceMs);
      movedAt = now;
      return;
    }
  };
}

/** To another cluster, which takes them all, or to the next size of the endpoint. */
async function moveOn(needs: Moving, mine: readonly LiveWorker[], now: number): Promise<void> {
  const isLate = ({ row, fullSince }: LiveWorker) =>
    row.wanted === "running" && fullSince !== undefined && now - fullSince >= limits.clusterNextMs;
  const next = new Map<string, string | undefined>();
  for (const worker of mine.filter(isLate)) {
    const version = versionOf(worker);
    if (!next.has(version)) next.set(version, await nextInClusters(needs, worker));
    const place = next.get(version);
    if (place !== undefined && isLate(worker))
      await stopWorker(needs, worker, `${leaving.full}; ${place} may find room`, needs.here.stopGraceMs);
  }
}
