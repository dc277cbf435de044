import type { Endpoint, EndpointSettings } from "../domain/endpoint.js";
import type { HostView } from "../domain/host.js";
import { type Holding, needOf, type Placement, place } from "../domain/placement.js";
import { isThrottled } from "../domain/worker.js";
import type { LiveWorker } from "../registry.js";
import type { Needs } from "./needs.js";
import { liveHosts } from "./read-job.js";
import { stopWorker } from "./worker-life.js";

type Placing = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "place">;
type Looking = Needs<"registry" | "place" | "clock">;

/** Finds a host for a worker of this version of an endpoint, or says why there is none. */
export async function placeFor(
  needs: Looking,
  endpoint: Endpoint,
  version: number,
  hosts: readonly HostView[] = liveHosts(needs),
): Promise<Placement> {
  const settings = await settingsOf(needs, endpoint, version);
  return place(needOf(settings), hosts, endpoint.settings, holdingsFor(needs, endpoint));
}

/** What workers of a version are made of: it need not be the present one. */
async function settingsOf({ registry }: Looking, endpoint: Endpoint, version: number): Promise<EndpointSettings> {
  if (version === endpoint.version) return endpoint.settings;
  return (await registry.release(endpoint.no, version))?.settings ?? endpoint.settings;
}

/** What workers have of their hosts; another owner's workers are not named. */
function holdingsFor({ registry }: Needs<"registry">, endpoint: Endpoint): Holding[] {
  return registry.liveWorkers().flatMap(({ row }) => {
    if (!row.resources) return [];
    const theirs = registry.endpointByNo(row.endpointNo);
    const holder =
      theirs?.ownerNo === endpoint.ownerNo
        ? `worker ${row.id} of endpoint ${theirs.id}`
        : "a worker of another user's endpoint";
    const later = theirs?.settings.flashBootType === "PRIORITY_FLASHBOOT" ? Number.MAX_SAFE_INTEGER / 2 : 0;
    const pausedRank = row.wanted === "paused" ? later + (row.pausedAt ?? row.createdAt) : undefined;
    const isLeaving = row.wanted === "stopped";
    return [{ workerNo: row.no, hostNo: row.hostNo, resources: row.resources, holder, isLeaving, pausedRank }];
  });
}

/** Makes paused workers give way to one that has no place without them. */
export async function makeWay(needs: Placing, workerNos: readonly number[]): Promise<void> {
  for (const no of workerNos) {
    const worker = needs.registry.workerByNo(no);
    if (worker) await stopWorker(needs, worker, "another worker needs what it holds", needs.place.stopGraceMs);
  }
}

/** Gives workers that wait for a place one, the longest waiting first; resolves with the endpoints of those that still wait. */
export async function placeThrottled(needs: Placing): Promise<ReadonlySet<number>> {
  const waiting = needs.registry
    .liveWorkers()
    .filter(({ row }) => isThrottled(row) && row.wanted === "running")
    .sort((a, b) => a.row.no - b.row.no);
  const left = new Set<number>();
  const hosts: readonly HostView[] = waiting.length > 0 ? liveHosts(needs) : [];
  // of workers of one version those behind one that finds no place find none either
  const without = new Set<string>();
  for (const worker of waiting) {
    const { endpointNo, version } = worker.row;
    const isPlaced = !without.has(`${endpointNo}/${version}`) && (await tried(needs, worker, hosts));
    if (isPlaced) continue;
    left.add(endpointNo);
    without.add(`${endpointNo}/${version}`);
  }
  return left;
}

/** One that cannot be placed just now keeps nobody else from it. */
const tried = (needs: Placing, worker: LiveWorker, hosts: readonly HostView[]): Promise<boolean> =>
  placeOne(needs, worker, hosts).catch((error) => {
    needs.emit({
      type: "server.warning",
      message: `worker ${worker.row.id} could not be given a place just now`,
      error,
    });
    return false;
  });

async function placeOne(needs: Placing, worker: LiveWorker, hosts: readonly HostView[]): Promise<boolean> {
  const { row } = worker;
  const endpoint = needs.registry.endpointByNo(row.endpointNo);
  if (!endpoint) return false;
  const found = await placeFor(needs, endpoint, row.version, hosts);
  if ("lacks" in found) {
    if (found.lacks !== row.why) await needs.registry.patchWorker(worker, { why: found.lacks });
    await makeWay(needs, found.giveWay);
    return false;
  }
  const { hostNo, resources } = found;
  const isPlaced = await needs.registry.placeWorker(worker, { hostNo, resources, placedAt: needs.clock.now() });
  if (isPlaced) needs.bell.ring("workers");
  return isPlaced;
}
