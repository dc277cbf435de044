import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { hasMachineFor } from "../../operations/workers/place-worker.js";
import { stopWorker } from "../../operations/workers/worker-life.js";

type Moving = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "here">;

/**
 * Stops a worker for which its cluster has found no room for a while, if a machine has room now: its successor starts
 * there. One at a time, so that several do not leave for the same room. Returns when to look next.
 */
export async function moveBack(needs: Moving, mine: readonly LiveWorker[], now: number): Promise<number | undefined> {
  const unplaced = mine.filter(({ unplacedSince }) => unplacedSince !== undefined);
  if (unplaced.length === 0) return undefined;
  const isLeaving = unplaced.some(({ row }) => row.wanted === "stopped");
  const late = unplaced
    .filter(({ unplacedSince = now }) => now - unplacedSince >= limits.clusterRoomMs)
    .sort((a, b) => a.row.no - b.row.no);
  // workers of a version find the same
  const seen = new Set<string>();
  for (const worker of isLeaving ? [] : late) {
    const version = `${worker.row.endpointNo}/${worker.row.version}`;
    if (seen.has(version) || worker.row.wanted !== "running") continue;
    seen.add(version);
    if (!(await hasMachineFor(needs, worker))) continue;
    await stopWorker(needs, worker, "a machine has room for it, and the cluster has none", needs.here.stopGraceMs);
    break;
  }
  return now + limits.netMs;
}
