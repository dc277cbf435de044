import { isSameType, untoldGpu } from "../../domain/hosts/gpu.js";
import type { ClusterGpus, HostFacts } from "../../domain/hosts/host.js";
import type { Needs } from "../needs.js";

/** The GPUs of one type in a cluster, and how many of them our workers hold: others' pods may hold more. */
export interface ClusterGpusInUse extends ClusterGpus {
  readonly held: number;
}

/**
 * The GPUs of a cluster by type; undefined if they are not known. A worker that may have one of several types counts for
 * the first: the cluster does not say which it got.
 */
export function clusterGpus(
  { registry }: Needs<"registry">,
  { no, cluster }: Pick<HostFacts, "cluster"> & { readonly no: number },
): ClusterGpusInUse[] | undefined {
  if (!cluster?.gpuTypes) return undefined;
  const inUse = registry
    .liveWorkers()
    .flatMap(({ row }) => (row.hostNo === no ? (row.resources?.gpus ?? []) : []))
    .filter(({ id }) => id === untoldGpu);
  return cluster.gpuTypes.map((type) => ({
    ...type,
    held: Math.min(type.count, inUse.filter(({ name }) => isSameType(name, type.name)).length),
  }));
}
