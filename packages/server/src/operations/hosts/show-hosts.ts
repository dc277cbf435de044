import { type ApiKey, isVisible } from "../../domain/access/key.js";
import type { HostFacts } from "../../domain/hosts/host.js";
import { limits } from "../../limits/index.js";
import { seesMore } from "../access/visible.js";
import type { LiveWorker, Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { clusterGpus } from "./cluster-gpus.js";

type Looking = Needs<"here" | "registry" | "clock">;

/**
 * The hosts that run workers, with their GPUs. Who holds a GPU is shown only of what the caller may see, and a member
 * counts only its own workers.
 */
export function showHosts(needs: Looking, caller: ApiKey) {
  seesMore(caller, "hosts");
  const { here, registry, clock } = needs;
  const workers = registry.liveWorkers();
  const counted = caller.isAdmin
    ? workers
    : workers.filter(({ row }) => isVisible(caller, registry.endpointByNo(row.endpointNo)));
  const ours = here.hosts().map(({ no, facts }) => ({ ...facts, no, seenAt: undefined }));
  const others = registry.hosts.filter(({ no }) => !here.tends(no));
  return [...ours, ...others].map((host) => ({
    id: String(host.no),
    isAlive: host.seenAt === undefined || host.seenAt >= clock.now() - limits.leaseMs,
    ...(host.seenAt === undefined ? {} : { seenAt: iso(host.seenAt) }),
    ...(host.location === undefined ? {} : { location: host.location }),
    cpuCount: host.cpus,
    memoryInGb: host.memoryMib / 1_024,
    workers: counted.filter(({ row }) => row.hostNo === host.no).length,
    gpusEnforced: host.gpusEnforced,
    ...(host.gpuProblem === undefined ? {} : { gpuProblem: host.gpuProblem }),
    gpus: gpusOf(needs, caller, host, workers),
    ...(host.cluster ? { cluster: showCluster(needs, host) } : {}),
  }));
}

function showCluster(needs: Looking, host: Parameters<typeof clusterGpus>[1]) {
  const gpuTypes = clusterGpus(needs, host)?.map(({ name, memoryMib, count, held }) => ({
    name,
    memoryInGb: memoryMib / 1_024,
    count,
    held,
  }));
  return { name: host.cluster?.name ?? "", ...(gpuTypes ? { gpuTypes } : {}) };
}

function gpusOf({ registry }: Looking, caller: ApiKey, host: HostFacts, workers: readonly LiveWorker[]) {
  const holders = new Map(
    workers.flatMap(({ row }) => (row.resources?.gpus ?? []).map(({ id }) => [id, row] as const)),
  );
  return host.gpus.map(({ id, name, memoryMib }) => {
    const holder = holders.get(id);
    const endpoint = holder && registry.endpointByNo(holder.endpointNo);
    const isSeen = endpoint !== undefined && isVisible(caller, endpoint);
    return {
      id,
      name,
      memoryInGb: memoryMib / 1_024,
      isHeld: holder !== undefined,
      ...(holder && isSeen ? { endpointId: endpoint.id, workerId: holder.id } : {}),
    };
  });
}
