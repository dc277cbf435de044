import { displayNameOf } from "../../domain/hosts/gpu.js";
import { countryOf, type HostView } from "../../domain/hosts/host.js";
import { actionsIn, type Pod, type PodState, podState } from "../../domain/pods/pod.js";
import { isThrottled } from "../../domain/workers/worker.js";
import { startOf } from "../../memory/live-workers.js";
import type { LiveWorker } from "../../memory/registry.js";
import { liveHosts, obstacle } from "../jobs/read-job.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { podCost } from "../usage/prices.js";
import { crashPause } from "../workers/crash-pause.js";
import { reachedAt } from "../workers/show-workers.js";

type Showing = Needs<"registry" | "here" | "clock">;
export type PodView = ReturnType<ReturnType<typeof podViewer>>;

/** Shows pods as callers see them. Hosts are looked at once for all pods of a list. */
export function podViewer(needs: Showing) {
  let hosts: readonly HostView[] | undefined;
  const looked = () => (hosts ??= liveHosts(needs));
  return (pod: Pod) => show(needs, pod, looked);
}

function show(needs: Showing, pod: Pod, hosts: () => readonly HostView[]) {
  const { settings } = pod;
  const {
    container,
    desiredStatus,
    changedAt,
    changedBy,
    stopAt,
    terminateAt,
    volumeHostNo: _,
    least: __,
    ...own
  } = settings.pod;
  const worker = workerOf(needs, pod);
  const state = podState(pod, worker?.row);
  const isPlaced = worker !== undefined && !isThrottled(worker.row);
  const host = isPlaced ? hosts().find(({ no }) => no === worker.row.hostNo) : undefined;
  const { cpus = host?.cpus, memoryMib = host?.memoryMib, gpus = [] } = worker?.row.resources ?? {};
  const detail = detailOf(needs, pod, worker, { state, hosts });
  const startedAt = worker?.row.readyAt;
  const volumeId = settings.networkVolumeIds[0];
  const cost = podCost(needs, pod);
  return {
    id: pod.id,
    name: settings.name,
    desiredStatus,
    status: state,
    ...(detail === undefined ? {} : { statusDetail: detail }),
    actions: actionsIn(state, own.locked),
    lastStatusChange: `${changedBy}: ${new Date(changedAt).toUTCString()}`,
    createdAt: iso(pod.createdAt),
    ...(startedAt === undefined ? {} : { lastStartedAt: iso(startedAt) }),
    uptimeSeconds: startedAt === undefined ? 0 : Math.max(0, Math.floor((needs.clock.now() - startedAt) / 1_000)),
    ...(stopAt === undefined ? {} : { stopAfter: iso(stopAt) }),
    ...(terminateAt === undefined ? {} : { terminateAfter: iso(terminateAt) }),
    consumerUserId: needs.registry.user(pod.ownerNo)?.id ?? "",
    image: container.imageName,
    env: settings.env,
    ports: container.ports,
    dockerEntrypoint: container.dockerEntrypoint,
    dockerStartCmd: container.dockerStartCmd,
    containerDiskInGb: container.containerDiskInGb,
    ...(container.containerRegistryAuthId === undefined
      ? {}
      : { containerRegistryAuthId: container.containerRegistryAuthId }),
    volumeInGb: volumeId === undefined ? container.volumeInGb : 0,
    volumeMountPath: container.volumeMountPath,
    volumeEncrypted: false,
    ...(volumeId === undefined ? {} : { networkVolumeId: volumeId }),
    ...(settings.templateId === "" ? {} : { templateId: settings.templateId }),
    ...own,
    computeType: settings.computeType,
    gpuTypeIds: settings.gpuTypeIds,
    gpuCount: settings.computeType === "GPU" ? settings.gpuCount : 0,
    ...(settings.computeType === "GPU" ? { gpu: gpuOf(pod, gpus) } : {}),
    ...(settings.cpuFlavorIds?.[0] === undefined ? {} : { cpuFlavorId: settings.cpuFlavorIds[0] }),
    vcpuCount: cpus ?? settings.vcpuCount ?? 0,
    memoryInGb: Math.floor((memoryMib ?? 0) / 1_024),
    dataCenterIds: settings.dataCenterIds,
    costPerHr: cost,
    adjustedCostPerHr: cost,
    ...(isPlaced ? { machineId: `host-${worker.row.hostNo}`, machine: machineOf(host, gpus) } : {}),
    ...networkOf(state === "RUNNING" ? worker : undefined),
    slsVersion: pod.version,
  };
}

/** The worker that runs a pod, or is to: not one that is being stopped, unless there is no other. */
function workerOf({ registry }: Showing, { no }: Pod): LiveWorker | undefined {
  const workers = registry.workersOf(no);
  return workers.find(({ row }) => row.wanted === "running" && row.killAt === undefined) ?? workers[0];
}

function gpuOf({ settings }: Pod, gpus: readonly { readonly name: string }[]) {
  const id = gpus[0]?.name ?? settings.gpuTypeIds[0] ?? "";
  return { id, count: settings.gpuCount, displayName: displayNameOf(id) };
}

function machineOf(host: HostView | undefined, gpus: readonly { readonly name: string }[]) {
  const gpuTypeId = gpus[0]?.name;
  return {
    ...(gpuTypeId === undefined ? {} : { gpuTypeId, gpuDisplayName: displayNameOf(gpuTypeId) }),
    cpuCount: host?.cpus ?? 0,
    ...(host?.location === undefined ? {} : { dataCenterId: host.location, location: countryOf(host.location) }),
  };
}

/** Where its ports are reached; null for a process that shares its machine's network, or one that does not run. */
function networkOf(worker: LiveWorker | undefined) {
  const { portMappings = null, publicIp = null, privateIp } = worker ? reachedAt(worker.row.handle) : {};
  return { portMappings, publicIp, ...(privateIp === undefined ? {} : { privateIp }) };
}

/** Why a pod does not run, in words. */
function detailOf(
  needs: Showing,
  pod: Pod,
  worker: LiveWorker | undefined,
  { state, hosts }: { state: PodState; hosts: () => readonly HostView[] },
): string | undefined {
  if (state === "RUNNING") return undefined;
  const isEnding = worker !== undefined && (worker.row.wanted !== "running" || worker.row.killAt !== undefined);
  if (state === "EXITED") return isEnding ? "Its container is being stopped." : undefined;
  if (state === "ERROR") return failure(needs, pod);
  if (isEnding) return "Its previous container is being stopped.";
  if (worker && isThrottled(worker.row)) return worker.row.why ?? "It waits for a place.";
  if (worker) return startOf(worker)?.doing ?? "Its container is being started.";
  return obstacle(needs, pod, hosts())?.detail ?? "It is about to be started.";
}

function failure(needs: Showing, pod: Pod): string {
  const { leftMs } = crashPause(needs, pod);
  const times = pod.failedStarts === 1 ? "once" : `${pod.failedStarts} times in a row`;
  const next = leftMs > 0 ? `it is started again in ${Math.ceil(leftMs / 1_000)} s` : "it is being started again";
  return `Its container ended ${times}; ${next}. The last time: ${pod.verdict ?? "unknown"}`;
}
