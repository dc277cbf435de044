import { dataCenters } from "../../limits/index.js";
import type { EndpointSettings } from "../endpoints/endpoint.js";
import type { Source } from "../endpoints/template.js";
import type { Gpu } from "./gpu.js";
import type { Place, WantedPlace } from "./place.js";

/** What a host can give to workers. */
export interface HostFacts {
  /** Its country or data centre code; undefined fits every place. */
  readonly location: string | undefined;
  readonly gpus: readonly Gpu[];
  /** Whether a worker that needs a GPU waits until it gets one. */
  readonly gpusEnforced: boolean;
  /** Virtual processors. */
  readonly cpus: number;
  readonly memoryMib: number;
  /** What workers cannot be made from there now, because no engine answers or the operator has turned it off. */
  readonly cannotRun?: readonly Source[];
  /** What is wrong with its GPUs, or why it has none, for people. */
  readonly gpuProblem?: string;
  /**
   * Of a cluster, whose own scheduler finds room and GPUs: it takes every worker, and says what that worker waits for.
   * Its name, the memory of a worker that asks for none, and of each GPU of one that has GPUs; and its stock, if that is known.
   */
  readonly cluster?: {
    /** The name by which endpoints ask for it. */
    readonly name: string;
    /** Stands for its address and namespace: by it servers that have never reached it know which cluster it is. */
    readonly place?: string;
    readonly memoryMib: number;
    readonly gpuMemoryMib: number;
    readonly gpuTypes?: readonly ClusterGpus[];
    /** The classes of pods that endpoints may name. */
    readonly podClasses?: readonly string[];
  };
  /** The driver does not answer. GPUs missing from `gpus` may be fine, and still serve the workers that have them. */
  readonly gpusUnseen?: true;
}

/** The GPUs of one type that a cluster's nodes have: a cluster does not tell them apart. */
export interface ClusterGpus extends Pick<Gpu, "name" | "memoryMib" | "driver"> {
  readonly count: number;
  /** The most that one node has, and so one worker can have. */
  readonly atOneNode: number;
}

/** The least that a machine must have altogether, whoever uses it. */
export interface LeastSize {
  readonly cpus: number;
  readonly memoryGb: number;
}

/** A machine sold as one of 16 GB reports somewhat less. */
const memoryGbOf = ({ memoryMib }: Pick<HostFacts, "memoryMib">): number => Math.round(memoryMib / 1_024);

/** Where GPUs are not enforced, everything may be tried on a small machine. */
export const isLargeEnough = (host: HostFacts, least: LeastSize | undefined): boolean =>
  least === undefined || !host.gpusEnforced || (host.cpus >= least.cpus && memoryGbOf(host) >= least.memoryGb);

export const sizeText = ({ cpus, memoryGb }: LeastSize): string =>
  [cpus > 0 ? `${cpus} vCPU` : "", memoryGb > 0 ? `${memoryGb} GB of memory` : ""].filter(Boolean).join(" and ");

/** Says that none of these machines is large enough. */
export function lackingSize(least: LeastSize, hosts: readonly HostFacts[]): string {
  const sizes = hosts.map((host) => `${host.cpus} vCPU and ${memoryGbOf(host)} GB`);
  return `It needs a machine with ${sizeText(least)}; here are ${[...new Set(sizes)].slice(0, 4).join(", ")}.`;
}

/** A host as the scaler sees it. */
export interface HostView extends HostFacts {
  readonly no: number;
  /** How many workers run there. */
  readonly workers: number;
}

const placeOf = ({ cluster }: Pick<HostFacts, "cluster">): Place => (cluster ? "cluster" : "machines");

/** Whether a host is in one of these places. */
export const isInPlace = (host: Pick<HostFacts, "cluster">, places: readonly WantedPlace[]): boolean =>
  places.some((each) => each === placeOf(host) || (host.cluster && each === `cluster/${host.cluster.name}`));

/** Where an endpoint wants its workers. */
export type WantedLocations = Pick<EndpointSettings, "locations" | "dataCenterIds">;

const continents = ["EU", "EUR", "AP", "OC"];

/** The country in a place's code, which is a country's or a data centre's: CZ of EU-CZ-1, US of US-TX-3. */
export function countryOf(code: string): string {
  const [first = "", second = ""] = code.split("-");
  return continents.includes(first) ? second : first;
}

/**
 * Whether a host is in a place that an endpoint allows. Empty lists allow every place, and a host without a place fits
 * all.
 */
export function isThere(
  { location }: Pick<HostView, "location">,
  { locations, dataCenterIds }: WantedLocations,
): boolean {
  if (location === undefined) return true;
  if (locations !== "" && !locations.split(",").some((code) => isIn(location, code))) return false;
  const isAnywhere = dataCenterIds.length === 0 || dataCenters.every((id) => dataCenterIds.includes(id));
  return isAnywhere || dataCenterIds.some((id) => isIn(location, id));
}

/** Whether a host's place is a country, or a data centre. A host that gives only its country counts as any data centre there. */
function isIn(location: string, code: string): boolean {
  const country = countryOf(location);
  return code === location || code === country || (location === country && countryOf(code) === country);
}

/** The findings of one look at a machine. */
export interface Stock {
  /** The working GPUs, by index; undefined if this look could not tell. */
  readonly gpus: readonly Gpu[] | undefined;
  /** Whether no GPU can be given out because the driver does not answer, which says nothing about GPUs in use. */
  readonly isBlind?: true;
  /** Whether the machine has GPUs, working or broken. */
  readonly hasGpus: boolean;
  /** What is wrong, one sentence each. A sentence about one GPU names its id if known. */
  readonly problems: readonly string[];
  readonly cpus: number;
  readonly memoryMib: number;
  readonly cannotRun?: readonly Source[];
}
