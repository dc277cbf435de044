import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import { isSameType } from "../../domain/hosts/gpu.js";
import { type Holding, type Need, needOf } from "../../domain/workers/placement.js";
import { hostIsSilent, isThrottled, type Resources, type Worker } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
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
  const rolling = new Map<number, number>(); // computed once per endpoint: thousands of workers may have ended
  return registry.endedWorkers().flatMap(({ row }) => {
    const { no: workerNo, endpointNo, hostNo, resources, endedAt = 0, version } = row;
    const endpoint = registry.endpointByNo(endpointNo);
    if (!resources || !endpoint || version === servingVersion(endpoint)) return [];
    const isBrief = endedAt >= since;
    if (!isBrief) {
      if (!isOfUse(needOf(endpoint.settings), resources)) return [];
      const from = rolling.get(endpointNo) ?? rollingSince(registry, endpoint, since);
      rolling.set(endpointNo, from);
      if (endedAt < from) return [];
    }
    const hasSuccessor = registry.workersOf(endpointNo).some(({ row }) => placeAt(row) >= endedAt);
    return hasSuccessor ? [] : [{ endpointNo, workerNo, hostNo, resources, isBrief }];
  });
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
  const hasGone = ({ row }: LiveWorker) =>
    row.endpointNo === endpoint.no && row.version !== serving && (row.endedAt ?? 0) >= since;
  if (!rows.some(isGoing) && !registry.endedWorkers().some(hasGone)) return Number.POSITIVE_INFINITY;
  const waiting = rows.filter((row) => row.version === serving && isThrottled(row) && row.wanted === "running");
  return Math.min(...waiting.map(({ createdAt }) => createdAt));
}

/** When a worker was given its place. */
const placeAt = (row: Worker): number => (row.throttledAt === undefined ? row.createdAt : (row.placedAt ?? 0));

/**
 * Resources of workers of silent hosts: their keeper may keep them alive, and another server on that machine reports
 * the same GPUs.
 */
export function abandoned({ registry, here, clock }: Looking): Holding[] {
  const now = clock.now();
  return registry.endedWorkers().flatMap(({ row }) => {
    const { no: workerNo, hostNo, resources, endedAt = 0, exit } = row;
    if (exit?.note !== hostIsSilent || !resources || now >= endedAt + here.awayMs) return [];
    const seenAt = registry.hostSilentAt(hostNo) ?? 0;
    if (now < seenAt + limits.leaseMs) return []; // the host is back, and stops them itself
    const holder = `worker ${row.id} of a host that is silent`;
    return [{ workerNo, hostNo, resources, holder, isLeaving: false, pausedRank: undefined }];
  });
}
