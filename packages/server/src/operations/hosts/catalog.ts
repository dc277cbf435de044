import { cpuFlavors } from "../../domain/hosts/cpu.js";
import { supportsCuda } from "../../domain/hosts/cuda.js";
import { type Gpu, isSameType, showGpuTypes, tierOfType } from "../../domain/hosts/gpu.js";
import { countryOf, type HostView, isLargeEnough, isThere, type LeastSize } from "../../domain/hosts/host.js";
import { dataCenters } from "../../limits/index.js";
import { liveHosts } from "../jobs/read-job.js";
import type { Needs } from "../needs.js";
import { clusterGpus } from "./cluster-gpus.js";

type Looking = Needs<"here" | "registry" | "clock">;

/** How easily something is had. */
export type Availability = "NONE" | "LOW" | "MEDIUM" | "HIGH";

/** What is asked of availability: a number of GPUs or processors for one worker, in a place. */
export interface Wish {
  readonly count?: number | undefined;
  readonly dataCenterId?: string | undefined;
  /** The CUDA version that the GPUs' driver must support. */
  readonly minCuda?: string | undefined;
  /** What its machine must have. */
  readonly least?: LeastSize | undefined;
}

/** Every GPU type that may be asked for, with its tier and how many of its GPUs one worker can have. */
export const gpuCatalog = (needs: Looking) =>
  showGpuTypes(liveHosts(needs)).map((type) => ({ ...type, pool: tierOfType(type.id) }));

/** How easily a worker gets GPUs of a type. A host that does not enforce GPUs takes every worker. */
export function gpuAvailability(
  needs: Looking,
  typeId: string,
  { count = 1, dataCenterId, minCuda, least }: Wish = {},
): Availability {
  const hosts = hostsIn(needs, dataCenterId).filter((host) => host.cluster || isLargeEnough(host, least));
  // a cluster may have nodes that are not known, or add some when a worker waits for them
  const mayHave = hosts.some(({ cluster }) => cluster);
  if (hosts.some(({ gpusEnforced }) => !gpusEnforced)) return "HIGH";
  const held = new Set(
    needs.registry.liveWorkers().flatMap(({ row }) => row.resources?.gpus.map(({ id }) => id) ?? []),
  );
  const free = ({ id, name, driver }: Gpu) =>
    isSameType(name, typeId) && supportsCuda(driver, minCuda) && !held.has(id);
  const workers = hosts.map(({ gpus }) => Math.floor(gpus.filter(free).length / count));
  const inClusters = hosts
    .flatMap((host) => clusterGpus(needs, host) ?? [])
    .filter(({ name, driver }) => isSameType(name, typeId) && supportsCuda(driver, minCuda))
    .map(({ count: all, held, atOneNode }) => (atOneNode < count ? 0 : Math.floor((all - held) / count)));
  const level = levelOf([...workers, ...inClusters].reduce((sum, n) => sum + n, 0));
  return level === "NONE" && mayHave ? "LOW" : level;
}

/** How easily a worker gets this many processors. */
export function cpuAvailability(needs: Looking, { count = 2, dataCenterId }: Wish = {}): Availability {
  const fitting = hostsIn(needs, dataCenterId).map(({ cpus }) => Math.floor(cpus / count));
  return levelOf(fitting.reduce((sum, n) => sum + n, 0));
}

/** The CPU flavours, with the processors that the largest host here has. */
export function cpuCatalog(needs: Looking) {
  const most = Math.max(0, ...liveHosts(needs).map(({ cpus }) => cpus));
  return cpuFlavors.map((flavor) => ({ ...flavor, cpusMax: most }));
}

/** The data centres of the public interface, and the places of hosts here. A host without a place is in all of them. */
export function dataCenterCatalog(needs: Looking) {
  const hosts = liveHosts(needs);
  const here = hosts.flatMap(({ location }) => location ?? []);
  return [...new Set([...dataCenters, ...here])].map((id) => ({
    id,
    region: regionOf(id),
    isHere: hosts.some((host) => isThere(host, { locations: "", dataCenterIds: [id] })),
  }));
}

const hostsIn = (needs: Looking, dataCenterId: string | undefined): HostView[] =>
  liveHosts(needs).filter((host) =>
    isThere(host, { locations: "", dataCenterIds: dataCenterId === undefined ? [] : [dataCenterId] }),
  );

const levelOf = (workers: number): Availability =>
  workers === 0 ? "NONE" : workers === 1 ? "LOW" : workers < 4 ? "MEDIUM" : "HIGH";

const regions: Readonly<Record<string, string>> = {
  US: "NORTH_AMERICA",
  CA: "NORTH_AMERICA",
  EU: "EUROPE",
  EUR: "EUROPE",
  AP: "ASIA",
  OC: "OCEANIA",
};
const regionOf = (id: string): string =>
  regions[id.split("-")[0] ?? ""] ?? (["CZ", "FR", "GB", "NO", "RO"].includes(countryOf(id)) ? "EUROPE" : "UNKNOWN");
