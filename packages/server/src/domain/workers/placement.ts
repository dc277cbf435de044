import { cudaOf, supportsCuda } from "../hosts/cuda.js";
import { type Gpu, isSameType } from "../hosts/gpu.js";
import {
  type HostView,
  isInPlace,
  isLargeEnough,
  isThere,
  lackingSize,
  sizeText,
  type WantedLocations,
} from "../hosts/host.js";
import type { WantedPlace } from "../hosts/place.js";
import { type ClusterOrder, inCluster, lackingCluster } from "./cluster-placement.js";
import { type Need, shareText } from "./need.js";
import type { Resources } from "./worker.js";

/** The resources that a worker holds on its host. */
export interface Holding {
  readonly workerNo: number;
  readonly hostNo: number;
  readonly resources: Resources;
  /** Describes the worker in words that may be shown to the user who asks. */
  readonly holder: string;
  /** It was told to stop and has not ended yet. */
  readonly isLeaving: boolean;
  /** Set if it may be stopped to make room; workers with a lower rank go first. */
  readonly pausedRank: number | undefined;
}

export type Placement =
  | { readonly hostNo: number; readonly resources: Resources }
  /** Nothing fits: why, and which paused workers would have to make room. */
  | { readonly lacks: string; readonly giveWay: readonly number[] };

/** Where a worker may run. */
export interface Where extends WantedLocations, ClusterOrder {
  /** In order of preference. */
  readonly places: readonly WantedPlace[];
}

/**
 * Finds a host for a worker: first by the order of places, then of GPU types, then the host with the fewest workers. With
 * an L4 free on the busier of two hosts and an A40 on the other, "L4, A40" gets the L4. A cluster takes every worker.
 */
export function place(need: Need, hosts: readonly HostView[], where: Where, holdings: readonly Holding[]): Placement {
  const inPlace = hosts.filter((host) => isThere(host, where) && isInPlace(host, where.places));
  const able = inPlace.filter(({ cannotRun = [] }) => need.source === undefined || !cannotRun.includes(need.source));
  // if no machine can run it, its start there will say why
  const fitting = able.length > 0 ? able : inPlace.filter(({ cluster }) => !cluster);
  if (fitting.length === 0 && !where.places.includes("machines"))
    return { lacks: lackingCluster(inPlace, where.places), giveWay: [] };
  const elsewhere = inCluster(need, fitting, where);
  if (elsewhere && where.places[0] !== "machines") return elsewhere;
  const machines = fitting.filter(({ cluster }) => !cluster);
  // a host that does not enforce GPUs is used only if none does
  const isEnforced = need.gpuCount > 0 && fitting.some(({ gpusEnforced }) => gpusEnforced);
  const there = machines
    .filter(({ gpusEnforced }) => gpusEnforced || !isEnforced)
    .sort((a, b) => a.workers - b.workers || a.no - b.no);
  const large = there.filter((host) => isLargeEnough(host, need.least));
  if (need.least && there.length > 0 && large.length === 0)
    return elsewhere ?? { lacks: lackingSize(need.least, there), giveWay: [] };
  const found = fit(need, large, holdings);
  if (found) return found;
  const small = need.least && large.length < there.length ? ` Only machines with ${sizeText(need.least)} count.` : "";
  const lacks = `${lacking(need, large, holdings)}${small}`;
  const left = holdings.filter(({ isLeaving }) => !isLeaving);
  // wait for workers that are leaving already
  if (fit(need, large, left)) return { lacks, giveWay: [] };
  const paused = left.filter(({ pausedRank }) => pausedRank !== undefined);
  const giveWay: Holding[] = [];
  for (const each of paused.sort((a, b) => (a.pausedRank ?? 0) - (b.pausedRank ?? 0))) {
    giveWay.push(each);
    if (!fit(need, large, without(left, giveWay))) continue;
    const chosen = giveWay.filter((one) => !fit(need, large, without(left, without(giveWay, [one]))));
    return { lacks, giveWay: chosen.map(({ workerNo }) => workerNo) };
  }
  return elsewhere ?? { lacks, giveWay: [] };
}

const without = (all: readonly Holding[], some: readonly Holding[]): Holding[] =>
  all.filter((each) => !some.includes(each));

function fit(need: Need, hosts: readonly HostView[], holdings: readonly Holding[]) {
  const types = need.gpuCount === 0 ? [] : need.gpuTypes;
  const wishes = (types.length > 0 ? types : [undefined]).flatMap((type) =>
    need.shares.map((share) => ({ type, share })),
  );
  for (const { type, share } of wishes) {
    for (const host of hosts) {
      const gpus = gpusFor(need, type, host, holdings);
      const free = freeShare(host, holdings);
      if (!gpus || free.cpus < (share.cpus ?? 0) || free.memoryMib < (share.memoryMib ?? 0)) continue;
      const given = gpus.map(({ id, name }) => ({ id, name }));
      return { hostNo: host.no, resources: { gpus: given, ...share } };
    }
  }
  return undefined;
}

/** As many free GPUs of one type as are needed; an empty list if a host that does not enforce GPUs has too few. */
function gpusFor(need: Need, type: string | undefined, host: HostView, holdings: readonly Holding[]) {
  const free = freeGpus(host, holdings).filter(
    ({ name, driver }) => (type === undefined || isSameType(name, type)) && supportsCuda(driver, need.cuda),
  );
  // a worker's GPUs must be of one type
  const names = type === undefined ? [...new Set(free.map(({ name }) => name))] : [type];
  for (const name of names) {
    const same = free.filter((gpu) => isSameType(gpu.name, name));
    if (need.gpuCount > 0 && same.length >= need.gpuCount) return same.slice(0, need.gpuCount);
  }
  return need.gpuCount === 0 || !host.gpusEnforced ? [] : undefined;
}

/** GPU ids are unique everywhere: two servers on one machine are two hosts, and both report the same GPUs. */
function freeGpus(host: HostView, holdings: readonly Holding[]): Gpu[] {
  const held = new Set(holdings.flatMap(({ resources }) => resources.gpus.map(({ id }) => id)));
  return host.gpus.filter(({ id }) => !held.has(id));
}

function freeShare(host: HostView, holdings: readonly Holding[]) {
  const own = holdings.filter(({ hostNo }) => hostNo === host.no);
  const sum = (of: (resources: Resources) => number | undefined) =>
    own.reduce((total, { resources }) => total + (of(resources) ?? 0), 0);
  return { cpus: host.cpus - sum(({ cpus }) => cpus), memoryMib: host.memoryMib - sum(({ memoryMib }) => memoryMib) };
}

/** What is missing, and who holds it. */
function lacking(need: Need, hosts: readonly HostView[], holdings: readonly Holding[]): string {
  if (hosts.length === 0) return "No host is in the places that the endpoint names.";
  if (need.gpuCount > 0) return lackingGpus(need, hosts, holdings);
  const most = hosts.map((host) => ({ host, ...freeShare(host, holdings) })).sort((a, b) => b.cpus - a.cpus)[0];
  const wanted = [...new Set(need.shares.map(shareText))].join(", or ");
  const all = `${most?.host.cpus} vCPU and ${Math.round((most?.host.memoryMib ?? 0) / 1_024)} GB`;
  const free = `${Math.max(0, most?.cpus ?? 0)} vCPU and ${Math.max(0, Math.round((most?.memoryMib ?? 0) / 1_024))} GB`;
  const who = holders(holdings.filter(({ resources: { cpus, memoryMib } }) => (cpus ?? 0) + (memoryMib ?? 0) > 0));
  return `It needs ${wanted}; free here: ${free} of ${all}${who}.`;
}

function lackingGpus(need: Need, hosts: readonly HostView[], holdings: readonly Holding[]): string {
  const isWanted = ({ name, driver }: Gpu) =>
    supportsCuda(driver, need.cuda) &&
    (need.gpuTypes.length === 0 || need.gpuTypes.some((type) => isSameType(type, name)));
  // two servers on one machine report the same GPUs
  const all = [...new Map(hosts.flatMap(({ gpus }) => gpus).map((gpu) => [gpu.id, gpu])).values()];
  const fitting = all.filter(isWanted);
  const type = need.gpuTypes.length === 0 ? "GPU" : [...new Set(need.gpuTypes)].join(" or ");
  const wanted = need.cuda === undefined ? type : `${type} whose driver supports CUDA ${need.cuda}`;
  const isOne = need.gpuCount === 1;
  const count = isOne ? "" : `${need.gpuCount} × `;
  const together = isOne || need.gpuTypes.length === 1 ? "" : " of one type";
  const atOne = isOne || hosts.length === 1 ? "" : " at one host";
  if (hosts.every((host) => mostOfOneType(host.gpus.filter(isWanted)) < need.gpuCount)) {
    const problem = hosts.find(({ gpuProblem }) => gpuProblem !== undefined)?.gpuProblem;
    const nameOf = ({ name, driver }: Gpu) => (need.cuda === undefined ? name : `${name} with ${cudaWords(driver)}`);
    const names = [...new Set(all.map(nameOf))];
    const there = names.map((name) => `${all.filter((gpu) => nameOf(gpu) === name).length} × ${name}`).join(", ");
    const why = problem === undefined ? "" : ` (${problem})`;
    return `It needs ${count}${wanted}${together}${atOne}; here ${there === "" ? `is no GPU${why}` : `are ${there}`}.`;
  }
  const held = holdings.flatMap(({ resources }) => resources.gpus);
  const has = holdings.filter(({ resources: { gpus } }) => heldOf(fitting, gpus) > 0);
  return `It needs ${count}${wanted}${together}${atOne}; free here: ${fitting.length - heldOf(fitting, held)} of ${fitting.length}${holders(has)}.`;
}

const cudaWords = (driver: string): string => {
  const newest = cudaOf(driver);
  return newest === undefined ? "an unknown driver" : `CUDA up to ${newest}`;
};

/** The most GPUs of a single type: a worker's GPUs must be of one type. */
const mostOfOneType = (gpus: readonly Gpu[]): number =>
  Math.max(0, ...gpus.map(({ name }) => gpus.filter((other) => isSameType(other.name, name)).length));

/** How many of these GPUs are among the held ones. */
const heldOf = (gpus: readonly Gpu[], held: Resources["gpus"]): number => {
  const ids = new Set(held.map(({ id }) => id));
  return gpus.filter(({ id }) => ids.has(id)).length;
};

const shownMax = 4;
function holders(holdings: readonly Holding[]): string {
  if (holdings.length === 0) return "";
  const names = [...new Set(holdings.map(({ holder }) => holder))];
  const more = names.length > shownMax ? ` and ${names.length - shownMax} more` : "";
  return `; held by ${names.slice(0, shownMax).join(", ")}${more}`;
}
