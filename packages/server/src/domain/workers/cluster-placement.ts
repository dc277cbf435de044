import { isSameType, untoldGpu } from "../hosts/gpu.js";
import type { ClusterGpus, HostView } from "../hosts/host.js";
import { type WantedPlace, wantedCluster } from "../hosts/place.js";
import type { Need, Share } from "./need.js";
import type { Resources } from "./worker.js";

/** Which clusters come first. */
export interface ClusterOrder {
  /** Their numbers in order of preference; others come after them. */
  readonly clusters?: readonly number[];
  /** What clusters have had no room for lately: it is asked for again when nothing else is left. */
  readonly full?: readonly Full[];
}

/** A cluster, and the size of a worker that it has had no room for. */
export interface Full extends Share {
  readonly hostNo: number;
}

/**
 * The best cluster among these hosts, for the first size that it may have room for: its own scheduler finds room and GPUs, or
 * says what it lacks. One that is known to have no GPUs of these types may still add some.
 */
export function inCluster(need: Need, hosts: readonly HostView[], { clusters = [], full = [] }: ClusterOrder) {
  const rank = (no: number) => (clusters.includes(no) ? clusters.indexOf(no) : clusters.length);
  const choices = need.shares.flatMap((share, order) =>
    hosts.flatMap(({ no, cluster }) => {
      if (!cluster) return [];
      const resources = heldIn(need, cluster, share);
      const lacks = need.gpuCount > 0 && !mayHave(need, cluster.gpuTypes ?? []);
      const wasFull = isFull(full, { hostNo: no, ...resources });
      return [{ hostNo: no, resources, by: [Number(lacks), Number(wasFull), order, rank(no), no] }];
    }),
  );
  const [best] = choices.sort((a, b) => firstDifference(a.by, b.by));
  return best && { hostNo: best.hostNo, resources: best.resources };
}

/** Whether a cluster had no room for a worker of this size. */
export const isFull = (full: readonly Full[], { hostNo, cpus, memoryMib }: Full): boolean =>
  full.some((each) => each.hostNo === hostNo && each.cpus === cpus && each.memoryMib === memoryMib);

const firstDifference = (a: readonly number[], b: readonly number[]): number =>
  a.map((each, at) => each - (b[at] ?? 0)).find((difference) => difference !== 0) ?? 0;

/** If no type is known, nothing is: the nodes may have no label that would name one. */
const mayHave = ({ gpuCount, gpuTypes }: Need, there: readonly ClusterGpus[]): boolean =>
  there.length === 0 ||
  there.some(
    ({ name, atOneNode }) =>
      atOneNode >= gpuCount && (gpuTypes.length === 0 || gpuTypes.some((type) => isSameType(name, type))),
  );

/** What a worker holds in a cluster. A node has room for what a pod asks for, so the minimum is asked for. */
function heldIn(need: Need, cluster: NonNullable<HostView["cluster"]>, share: Share): Resources {
  const name = need.gpuTypes[0] ?? "GPU";
  const gpus = Array.from({ length: need.gpuCount }, () => ({ id: untoldGpu, name }));
  const usualMib = need.gpuCount > 0 ? need.gpuCount * cluster.gpuMemoryMib : cluster.memoryMib;
  const memoryMib = Math.max(share.memoryMib ?? usualMib, (need.least?.memoryGb ?? 0) * 1_024);
  return { gpus, cpus: share.cpus ?? (need.least?.cpus || undefined), memoryMib };
}

/** Says why none of these clusters takes a worker that has to run in one. */
export function lackingCluster(clusters: readonly HostView[], [place = "cluster"]: readonly WantedPlace[]): string {
  const name = wantedCluster(place);
  if (clusters.length > 0) return "It has to run in a cluster, which runs container images only.";
  if (name !== undefined) return `It has to run in the cluster '${name}', which takes no workers now.`;
  return "It has to run in a cluster, and none takes workers now.";
}
