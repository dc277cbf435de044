import type { Node, NodeList } from "kubernetes-types/core/v1.js";
import { knownGpuType } from "../../domain/hosts/gpu.js";
import type { ClusterGpus } from "../../domain/hosts/host.js";
import { limits } from "../../limits/index.js";
import { labelOf } from "./affinity.js";
import { type Cluster, statusOf } from "./api-server/cluster.js";
import type { PodSettings } from "./pod.js";

type Naming = Pick<PodSettings, "gpuLabel" | "gpuResource">;

/** The GPUs of a cluster's nodes, by type; undefined if its account may not list nodes. */
export async function gpuTypesOf(cluster: Cluster, naming: Naming): Promise<readonly ClusterGpus[] | undefined> {
  const types = new Map<string, ClusterGpus>();
  let next: string | undefined;
  try {
    do {
      // nodes are large: they list their images
      const query = { labelSelector: naming.gpuLabel, limit: limits.clusterPageNodes, continue: next };
      const { items, metadata } = await cluster.ask<NodeList>("GET", "/api/v1/nodes", { query });
      for (const node of items) addTo(types, node, naming);
      next = metadata?.continue || undefined;
    } while (next !== undefined);
  } catch (error) {
    if (statusOf(error) === 403) return undefined;
    throw error;
  }
  return [...types.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function addTo(types: Map<string, ClusterGpus>, { metadata, spec, status }: Node, { gpuLabel, gpuResource }: Naming) {
  const labels = metadata?.labels ?? {};
  const name = knownGpuType((type) => labelOf(type) === labels[gpuLabel]) ?? labels[gpuLabel]?.replaceAll("-", " ");
  const count = Number(status?.allocatable?.[gpuResource] ?? 0);
  const isReady = status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
  const takesPods = isReady && spec?.unschedulable !== true;
  if (!name || !takesPods || !Number.isSafeInteger(count) || count <= 0) return;
  const before = types.get(name);
  if (!before && types.size >= limits.clusterGpuTypesMax) return;
  types.set(name, {
    name,
    memoryMib: before?.memoryMib ?? (Number(labels["nvidia.com/gpu.memory"]) || 0),
    driver: before?.driver ?? driverOf(labels),
    count: (before?.count ?? 0) + count,
    atOneNode: Math.max(before?.atOneNode ?? 0, count),
  });
}

/** The driver's version, which GPU feature discovery has in one label or, before, in three. */
function driverOf(labels: Readonly<Record<string, string>>): string {
  const parts = ["major", "minor", "rev"].flatMap((part) => labels[`nvidia.com/cuda.driver.${part}`] || []);
  return labels["nvidia.com/cuda.driver-version.full"] ?? parts.join(".");
}
