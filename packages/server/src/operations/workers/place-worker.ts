import { setImmediate } from "node:timers/promises";
import { type Endpoint, servingVersion } from "../../domain/endpoints/endpoint.js";
import { sourceOf } from "../../domain/endpoints/template.js";
import type { HostView } from "../../domain/hosts/host.js";
import { wantedCluster } from "../../domain/hosts/place.js";
import { isPod } from "../../domain/pods/pod.js";
import { type Full, isFull } from "../../domain/workers/cluster-placement.js";
import { fairPlaces } from "../../domain/workers/fair-places.js";
import { anotherUsers, podHolder, workerHolder } from "../../domain/workers/holders.js";
import { type Need, needOf, shareText } from "../../domain/workers/need.js";
import { type Holding, type Placement, place, type Where } from "../../domain/workers/placement.js";
import { isThrottled, type Resources } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { liveHosts } from "../jobs/read-job.js";
import type { Needs } from "../needs.js";
import { barredBy } from "../usage/quotas.js";
import { abandoned, placeAt, type Reserved, reservedIn } from "./held-back.js";
import { stopWorker } from "./worker-life.js";

type Placing = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "here">;
type Looking = Needs<"registry" | "here" | "clock">;

/** The hosts, and the resources that are reserved for a while. */
interface Supply {
  readonly hosts: readonly HostView[];
  readonly reserved: readonly Reserved[];
}
const supplyOf = (needs: Looking): Supply => ({ hosts: liveHosts(needs), reserved: reservedIn(needs) });

/** Finds a host for a worker of this version of an endpoint, or says why there is none. */
export async function placeFor(
  needs: Looking,
  endpoint: Endpoint,
  version: number,
  { hosts, reserved }: Supply = supplyOf(needs),
): Promise<Placement> {
  const need = await needFor(needs, endpoint, version, hosts);
  const there = hostsFor(needs, endpoint, hosts);
  if (there.length === 0 && hosts.length > 0)
    return { lacks: "Its volume is on a host that is away; it starts when the host is back.", giveWay: [] };
  const found = place(need, there, whereOf(needs, endpoint, need), holdingsFor(needs, endpoint, reserved));
  const barred = "hostNo" in found ? barredBy(needs, endpoint, found.resources) : undefined;
  return barred === undefined ? found : { lacks: barred, giveWay: [] };
}

/**
 * The hosts where an endpoint's workers may run: a pod runs where its own volume is. Each cluster has network volumes of
 * its own, so an endpoint with one has only the first cluster, or the one that it names.
 */
function hostsFor(needs: Looking, { settings }: Endpoint, hosts: readonly HostView[]): readonly HostView[] {
  const hostNo = settings.pod?.volumeHostNo;
  if (hostNo !== undefined) return hosts.filter(({ no }) => no === hostNo);
  const namesOne = settings.place !== undefined && wantedCluster(settings.place) !== undefined;
  if (settings.networkVolumeIds.length === 0 || namesOne) return hosts;
  const [first] = clustersOf(needs);
  return hosts.filter(({ no, cluster }) => !cluster || no === first);
}

/** All clusters, by number: those of the settings here in their order, then those that only other servers reach. */
function clustersOf({ here, registry }: Looking): number[] {
  const ours = here.clusters.map(({ no }) => no);
  const reported = [...here.hosts().map(({ no, facts }) => ({ ...facts, no })), ...registry.hosts];
  const others = reported.filter(({ cluster }) => cluster).map(({ no }) => no);
  return [...new Set([...ours, ...others.sort((a, b) => a - b)])];
}

/** Where an endpoint's workers may run. A directory is a machine's, wherever images run. */
function whereOf(needs: Looking, endpoint: Endpoint, { source }: Need): Where {
  const { settings } = endpoint;
  const clusters = clustersOf(needs);
  const full = leftBy(needs, endpoint, [leaving.full], limits.clusterLeftMs).flatMap(({ row }) => fullOf(row) ?? []);
  if (settings.place !== undefined) return { ...settings, places: [settings.place], clusters, full };
  const places = source === "directory" ? (["machines"] as const) : needs.here.places;
  const where: Where = { ...settings, places, clusters, full };
  if (places.indexOf("machines") !== 1) return where;
  const left = leftBy(needs, endpoint, Object.values(leaving), limits.clusterRoomMs);
  return left.some(({ row }) => clusters.includes(row.hostNo)) ? machinesFirst(where) : where;
}

/** How the reasons begin for which a worker leaves its cluster: it takes none now, or it may take it later. */
export const leaving = { full: "its cluster cannot take it now", waiting: "its cluster has not taken it yet" } as const;

/** The workers of an endpoint that have left their cluster within the last `withinMs` for one of these reasons. */
function leftBy({ registry, clock }: Looking, { no }: Endpoint, reasons: readonly string[], withinMs: number) {
  const isFor = (why: string) => reasons.some((reason) => why.startsWith(reason));
  return [...registry.workersOf(no), ...registry.endedWorkersOf(no)].filter(
    ({ row }) => row.why !== undefined && isFor(row.why) && clock.now() - (row.endedAt ?? clock.now()) < withinMs,
  );
}

/** What its cluster has no room for, as this worker has found. */
const fullOf = ({ hostNo, resources }: LiveWorker["row"]): Full | undefined => resources && { hostNo, ...resources };

/**
 * Says whether a worker of the serving version would find a place if the given workers of its endpoint had ended.
 * Workers that are leaving, or would give way, count as gone.
 */
export async function fitting(needs: Looking, endpoint: Endpoint): Promise<(without: readonly number[]) => boolean> {
  const { hosts, reserved } = supplyOf(needs);
  const need = await needFor(needs, endpoint, servingVersion(endpoint), hosts);
  const staying = holdingsFor(needs, endpoint, reserved).filter(
    ({ isLeaving, pausedRank }) => !isLeaving && pausedRank === undefined,
  );
  return (without) => {
    const held = staying.filter(({ workerNo }) => !without.includes(workerNo));
    return "hostNo" in place(need, hostsFor(needs, endpoint, hosts), whereOf(needs, endpoint, need), held);
  };
}

/**
 * What workers of a version need; the version may be an old one. Whether they are containers matters only where hosts
 * differ.
 */
async function needFor({ registry }: Looking, endpoint: Endpoint, version: number, hosts: readonly HostView[]) {
  if (version === endpoint.version && hosts.length < 2) return needOf(endpoint.settings);
  const release = await registry.release(endpoint.no, version);
  if (!release) return needOf(endpoint.settings);
  return needOf(release.settings, sourceOf(release.template.imageName));
}

/** Whether a machine has room for a worker that its cluster has not placed yet, so that it need not wait there. */
export async function hasMachineFor(needs: Looking, worker: LiveWorker): Promise<boolean> {
  const found = await placeElsewhere(needs, worker, (where) =>
    where.places.includes("machines") ? machinesFirst(where) : undefined,
  );
  return found !== undefined && !found.host.cluster;
}

/**
 * Another cluster, by name, that may have room for a worker which its own has none for, or another of its sizes, in words;
 * undefined if there is none.
 */
export async function nextInClusters(needs: Looking, worker: LiveWorker): Promise<string | undefined> {
  let full: readonly Full[] = [];
  const found = await placeElsewhere(needs, worker, (where) => {
    full = [...(where.full ?? []), fullOf(worker.row) ?? []].flat();
    return { ...where, places: where.places.filter((each) => each !== "machines"), full };
  });
  if (!found?.host.cluster || isFull(full, { hostNo: found.host.no, ...found.resources })) return undefined;
  if (found.host.no !== worker.row.hostNo) return `cluster ${found.host.cluster.name}`;
  return `a worker of ${shareText(found.resources)}`;
}

/** The host that a worker's successor would be given there, and what it would hold; undefined if none. */
async function placeElsewhere(
  needs: Looking,
  { row }: LiveWorker,
  there: (where: Where) => Where | undefined,
): Promise<{ readonly host: HostView; readonly resources: Resources } | undefined> {
  const endpoint = needs.registry.endpointByNo(row.endpointNo);
  const { hosts, reserved } = supplyOf(needs);
  if (!endpoint) return undefined;
  const need = await needFor(needs, endpoint, row.version, hosts);
  const where = there(whereOf(needs, endpoint, need));
  if (!where) return undefined;
  const found = place(need, hostsFor(needs, endpoint, hosts), where, holdingsFor(needs, endpoint, reserved));
  const host = "hostNo" in found ? hosts.find(({ no }) => no === found.hostNo) : undefined;
  return "hostNo" in found && host ? { host, resources: found.resources } : undefined;
}

const machinesFirst = (where: Where): Where => ({
  ...where,
  places: ["machines", ...where.places.filter((each) => each !== "machines")],
});

/** What workers hold on their hosts. Another owner's workers are not named. */
function holdingsFor(needs: Looking, endpoint: Endpoint, reserved: readonly Reserved[]): Holding[] {
  const { registry } = needs;
  const isTheirs = ({ endpointNo }: Reserved) => registry.endpointByNo(endpointNo)?.ownerNo !== endpoint.ownerNo;
  const others = reserved
    .filter(({ endpointNo }) => endpointNo !== endpoint.no)
    .map((each) => {
      const holder = isTheirs(each) ? anotherUsers : "a release";
      return { ...each, holder, isLeaving: each.isBrief, pausedRank: undefined };
    });
  const held = registry.liveWorkers().flatMap(({ row }) => {
    if (!row.resources) return [];
    const theirs = registry.endpointByNo(row.endpointNo);
    const holder =
      theirs?.ownerNo !== endpoint.ownerNo
        ? anotherUsers
        : isPod(theirs)
          ? podHolder(theirs.id)
          : workerHolder(row.id, theirs.id);
    const later = theirs?.settings.flashBootType === "PRIORITY_FLASHBOOT" ? Number.MAX_SAFE_INTEGER / 2 : 0;
    const pausedRank = row.wanted === "paused" ? later + (row.pausedAt ?? row.createdAt) : undefined;
    const isLeaving = row.wanted === "stopped";
    return [{ workerNo: row.no, hostNo: row.hostNo, resources: row.resources, holder, isLeaving, pausedRank }];
  });
  return [...held, ...others, ...abandoned(needs, endpoint)];
}

/** Stops paused workers whose resources another worker needs. */
export async function makeWay(needs: Placing, workerNos: readonly number[]): Promise<void> {
  for (const no of workerNos) {
    const worker = needs.registry.workerByNo(no);
    if (worker) await stopWorker(needs, worker, "another worker needs what it holds", needs.here.stopGraceMs);
  }
}

/**
 * The workers that wait for a place, users in turn. What users hold counts, and what they had since a second user began
 * to wait: otherwise the older of two would have every place where one is all there is.
 */
function inFairOrder({ registry, clock }: Placing): LiveWorker[] {
  const ownerOf = ({ row }: LiveWorker) => registry.endpointByNo(row.endpointNo)?.ownerNo ?? 0;
  const live = registry.liveWorkers();
  const waiting = live.filter(waits);
  if (waiting.length < 2) return waiting;
  const holds = new Map<number, number>();
  const count = (worker: LiveWorker): void => {
    const ownerNo = ownerOf(worker);
    holds.set(ownerNo, (holds.get(ownerNo) ?? 0) + Math.max(1, worker.row.resources?.gpus.length ?? 0));
  };
  for (const worker of live) if (!isThrottled(worker.row)) count(worker);
  const since = Math.max(secondSince(waiting, ownerOf), clock.now() - limits.fairPlacesMs);
  for (const worker of registry.endings().since(since)) {
    const { startedAt } = worker.row;
    // one that was placed before has had its place without taking it from anybody
    if (startedAt !== undefined && placeAt(worker.row) >= since) count(worker);
  }
  const sized = waiting.map((worker) => {
    const { computeType, gpuCount } = registry.endpointByNo(worker.row.endpointNo)?.settings ?? {};
    return { worker, no: worker.row.no, ownerNo: ownerOf(worker), size: computeType === "GPU" ? (gpuCount ?? 1) : 1 };
  });
  const weightOf = (ownerNo: number) => registry.user(ownerNo)?.terms.weight ?? 1;
  return fairPlaces(sized, holds, weightOf).map(({ worker }) => worker);
}

/** Whether a worker waits for a place. */
const waits = ({ row }: LiveWorker): boolean =>
  isThrottled(row) && row.wanted === "running" && row.endedAt === undefined;

/** Since when a second user waits; infinity while all workers are one user's. */
function secondSince(waiting: readonly LiveWorker[], ownerOf: (worker: LiveWorker) => number): number {
  const since = new Map<number, number>();
  for (const worker of waiting) {
    const ownerNo = ownerOf(worker);
    since.set(ownerNo, Math.min(since.get(ownerNo) ?? Number.POSITIVE_INFINITY, worker.row.createdAt));
  }
  return [...since.values()].sort((a, b) => a - b)[1] ?? Number.POSITIVE_INFINITY;
}

/**
 * Gives a place to workers that wait for one: users take turns, and of each user the longest waiting goes first.
 * Resolves with the endpoints whose workers still wait, and when to look again at the latest.
 */
export async function placeThrottled(needs: Placing): Promise<{ left: ReadonlySet<number>; lookInMs: number }> {
  const waiting = inFairOrder(needs);
  const left = new Set<number>();
  let supply = waiting.length > 0 ? supplyOf(needs) : { hosts: [], reserved: [] };
  let tries = 0;
  // if one worker of a version finds no place, the others find none either, for the same reason
  const first = new Map<string, LiveWorker>();
  for (const worker of waiting) {
    const { endpointNo, version } = worker.row;
    const before = first.get(`${endpointNo}/${version}`);
    // thousands of endpoints may each have a worker that waits, and each of them looks through all workers
    if (!before && ++tries % limits.triedPerTurn === 0) {
      await setImmediate();
      supply = supplyOf(needs); // a release may have ended a worker, whose place is kept for the next one
    }
    if (!waits(worker)) continue;
    if (!before && (await tried(needs, worker, supply))) continue;
    left.add(endpointNo);
    first.set(`${endpointNo}/${version}`, before ?? worker);
    const why = before?.row.why;
    if (why !== undefined && why !== worker.row.why) await needs.registry.changeWorker(worker, { by: "wait", why });
  }
  return { left, lookInMs: supply.reserved.length > 0 ? limits.reservedMs : limits.netMs };
}

/** Tries to place a worker; a failure must not keep the others from their places. */
const tried = (needs: Placing, worker: LiveWorker, supply: Supply): Promise<boolean> =>
  placeOne(needs, worker, supply).catch((error) => {
    needs.emit({
      type: "server.warning",
      message: `worker ${worker.row.id} could not be given a place just now`,
      error,
    });
    return false;
  });

async function placeOne(needs: Placing, worker: LiveWorker, supply: Supply): Promise<boolean> {
  const { row } = worker;
  const endpoint = needs.registry.endpointByNo(row.endpointNo);
  if (!endpoint) return false;
  const found = await placeFor(needs, endpoint, row.version, supply);
  if ("lacks" in found) {
    if (found.lacks !== row.why) await needs.registry.changeWorker(worker, { by: "wait", why: found.lacks });
    await makeWay(needs, found.giveWay);
    return false;
  }
  const { hostNo, resources } = found;
  const isPlaced = await needs.registry.placeWorker(worker, { hostNo, resources, placedAt: needs.clock.now() });
  if (isPlaced) needs.bell.ring("workers");
  return isPlaced;
}
