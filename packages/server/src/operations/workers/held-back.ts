import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import { isSameType } from "../../domain/hosts/gpu.js";
import { anotherUsers, silentHolder } from "../../domain/workers/holders.js";
import { type Need, needOf } from "../../domain/workers/need.js";
import type { Holding } from "../../domain/workers/placement.js";
import { isThrottled, type Resources, type Worker } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/live-workers.js";
import type { Needs } from "../needs.js";

// Resources of ended workers that must not be given out yet.

type Looking = Needs<"registry" | "here" | "clock">;

/** Resources of a worker that has just made way for another worker of its endpoint. */
export interface Reserved {
  readonly endpointNo: number;
  readonly workerNo: number;
  readonly hostNo: number;
  readonly resources: Resources;
  /** Reserved only for a moment, so as good as free. If false, reserved until more old workers have ended. */
  readonly isBrief: boolean;
}

/**
 * When an old version's worker ends, its resources stay reserved for its successor: for a moment, and for as long as
 * more old workers are leaving for the same successor. Otherwise a release would lose them to workers that have waited
 * longer.
 */
export function reservedIn({ registry, clock }: Looking): Reserved[] {
  const since = clock.now() - limits.reservedMs;
  const rolling = new Map<number, number>(); // computed once per endpoint
  const reserved: Reserved[] = [];
  for (const { row } of endedFor(registry, since)) {
    const { no: workerNo, endpointNo, hostNo, resources, endedAt = 0, version } = row;
    const endpoint = registry.endpointByNo(endpointNo);
    if (!resources || !endpoint || version === servingVersion(endpoint)) continue;
    const isBrief = endedAt >= since;
    if (!isBrief) {
      if (!isOfUse(needOf(endpoint.settings), resources)) continue;
      const from = rolling.get(endpointNo) ?? rollingSince(registry, endpoint, since);
      rolling.set(endpointNo, from);
      if (endedAt < from) continue;
    }
    const hasSuccessor = registry.workersOf(endpointNo).some(({ row }) => placeAt(row) >= endedAt);
    if (!hasSuccessor) reserved.push({ endpointNo, workerNo, hostNo, resources, isBrief });
  }
  return reserved;
}

/** Workers that ended since a time, and all ended workers of endpoints where one waits for a place. */
function endedFor(registry: Looking["registry"], since: number): ReadonlySet<LiveWorker> {
  const found = new Set(registry.endings().since(since));
  const waiting = registry.liveWorkers().filter(({ row }) => isThrottled(row));
  for (const endpointNo of new Set(waiting.map(({ row }) => row.endpointNo)))
    for (const worker of registry.endedWorkersOf(endpointNo)) found.add(worker);
  return found;
}

/** Whether the resources of one worker are part of what another needs. */
const isOfUse = ({ gpuCount, gpuTypes, shares }: Need, { gpus, cpus, memoryMib }: Resources): boolean =>
  (gpuCount > 0 && gpus.some(({ name }) => gpuTypes.length === 0 || gpuTypes.some((type) => isSameType(type, name)))) ||
  shares.some((share) => share.cpus !== undefined && (cpus ?? memoryMib) !== undefined);

/**
 * When the first new worker began to wait for old workers to leave; infinity unless an old worker is leaving, or has
 * left since `since`.
 */
function rollingSince(registry: Looking["registry"], endpoint: Endpoint, since: number): number {
  const serving = servingVersion(endpoint);
  const rows = registry.workersOf(endpoint.no).map(({ row }) => row);
  const isGoing = (row: Worker) => row.version !== serving && !isThrottled(row) && /closed|stopped/.test(row.wanted);
  const hasGone = () => {
    for (const { row } of registry.endedWorkersOf(endpoint.no))
      if (row.version !== serving && (row.endedAt ?? 0) >= since) return true;
    return false;
  };
  if (!rows.some(isGoing) && !hasGone()) return Number.POSITIVE_INFINITY;
  const waiting = rows.filter((row) => row.version === serving && isThrottled(row) && row.wanted === "running");
  return Math.min(...waiting.map(({ createdAt }) => createdAt));
}

/** When a worker was given its place. */
export const placeAt = (row: Worker): number => (row.throttledAt === undefined ? row.createdAt : (row.placedAt ?? 0));

/**
 * Resources of workers of silent hosts: their keeper may keep them alive, and another server on that machine reports
 * the same GPUs. Another owner's workers are not named.
 */
export function abandoned({ registry, here, clock }: Looking, { ownerNo }: Endpoint): Holding[] {
  const now = clock.now();
  const held: Holding[] = [];
  for (const { row } of registry.endings().ofSilentHosts()) {
    const { no: workerNo, hostNo, resources, endedAt = 0 } = row;
    if (!resources || now >= endedAt + here.awayMs) continue;
    const seenAt = registry.hostSilentAt(hostNo) ?? 0;
    if (now < seenAt + limits.leaseMs) continue; // the host is back, and stops them itself
    const isOwn = registry.endpointByNo(row.endpointNo)?.ownerNo === ownerNo;
    const holder = isOwn ? silentHolder(row.id) : `${anotherUsers}, whose host is silent`;
    held.push({ workerNo, hostNo, resources, holder, isLeaving: false, pausedRank: undefined });
  }
  return held;
}
