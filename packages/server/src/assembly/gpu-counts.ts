import { type ClusterGpusInUse, clusterGpus } from "../operations/hosts/cluster-gpus.js";
import type { Needs } from "../operations/needs.js";

/** How many of this server's GPUs a worker holds, and how many are free. */
export function gpuCounts({ registry, here }: Needs<"registry" | "here">): { held: number; free: number } {
  const inUse = new Set(registry.liveWorkers().flatMap(({ row }) => row.resources?.gpus.map(({ id }) => id) ?? []));
  const gpus = here.hosts().flatMap(({ facts }) => facts.gpus);
  const inCluster = here.hosts().flatMap(({ no, facts }) => clusterGpus({ registry }, { no, ...facts }) ?? []);
  const sum = (of: (type: ClusterGpusInUse) => number) => inCluster.reduce((total, type) => total + of(type), 0);
  const held = gpus.filter(({ id }) => inUse.has(id)).length + sum((type) => type.held);
  return { held, free: gpus.length + sum(({ count }) => count) - held };
}
