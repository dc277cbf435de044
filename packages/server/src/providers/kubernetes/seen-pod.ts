import { constants } from "node:os";
import type { ContainerStatus, Pod, PodCondition } from "kubernetes-types/core/v1.js";
import type { Exit, WorkerHandle } from "../../domain/workers/worker.js";
import type { Sighting } from "../../provider.js";
import { containerName, credentialsGate, nameOf, workerLabel } from "./pod.js";

/** What matters of a pod as the cluster last told it. */
export interface SeenPod {
  readonly workerId: string;
  readonly uid: string;
  readonly phase: string;
  /** Why the pod as a whole has failed, in Kubernetes' word and words: Evicted, DeadlineExceeded, OutOfcpu … */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly address: string | undefined;
  readonly node: string | undefined;
  /** When its removal was asked for, in ms, with its grace. */
  readonly goneBy: number | undefined;
  readonly isScheduled: boolean;
  readonly unschedulable: string | undefined;
  /** A node is being cleared of other pods for it. */
  readonly isNominated: boolean;
  /** Gates that another controller, such as a queue, has not opened yet. */
  readonly isGated: boolean;
  /** Why the cluster takes it away: preemption, a lost node. */
  readonly disruption: Pick<PodCondition, "reason" | "message"> | undefined;
  /** Its image is there. */
  readonly hasImage: boolean;
  readonly waiting: { readonly reason: string; readonly message: string } | undefined;
  readonly isRunning: boolean;
  readonly ended: NonNullable<NonNullable<ContainerStatus["state"]>["terminated"]> | undefined;
}

export function seenPod(pod: Pod): SeenPod {
  const { metadata = {}, status = {} } = pod;
  // what else a cluster adds to its pods, such as a proxy, says nothing of the worker
  const container = status.containerStatuses?.find(({ name }) => name === containerName);
  const { running, terminated, waiting } = container?.state ?? {};
  const conditions = new Map((status.conditions ?? []).map((each) => [each.type, each]));
  const scheduled = conditions.get("PodScheduled");
  const disruption = conditions.get("DisruptionTarget");
  const goneBy = metadata.deletionTimestamp;
  return {
    workerId: metadata.labels?.[workerLabel] ?? "",
    uid: metadata.uid ?? "",
    phase: status.phase ?? "Pending",
    reason: status.reason,
    message: status.message,
    address: status.podIP,
    node: pod.spec?.nodeName,
    goneBy: goneBy === undefined ? undefined : Date.parse(String(goneBy)),
    isScheduled: scheduled?.status === "True" || pod.spec?.nodeName !== undefined,
    unschedulable: scheduled?.reason === "Unschedulable" ? (scheduled.message ?? "") : undefined,
    isNominated: status.nominatedNodeName !== undefined && status.nominatedNodeName !== "",
    isGated: pod.spec?.schedulingGates?.some(({ name }) => name !== credentialsGate) ?? false,
    disruption: disruption?.status === "True" ? disruption : undefined,
    hasImage: (container?.imageID ?? "") !== "" || running !== undefined || terminated !== undefined,
    waiting: waiting && { reason: waiting.reason ?? "", message: waiting.message ?? "" },
    isRunning: running !== undefined && status.phase === "Running",
    ended: terminated,
  };
}

/** Whether nothing of it runs any more, or ever will. */
export const isOver = ({ phase, ended }: SeenPod): boolean =>
  ended !== undefined || phase === "Failed" || phase === "Succeeded";

/** How a worker is found again: its pod, and the address that the whole cluster reaches. */
export const handleOf = (workerId: string, seen?: SeenPod, canFreeze = false): WorkerHandle => ({
  provider: "kubernetes",
  ref: { pod: nameOf(workerId), ...(seen ? { uid: seen.uid } : {}) },
  network: { reachedFrom: "anywhere", ...(seen?.address ? { address: seen.address } : {}) },
  ...(canFreeze ? {} : { isUnfreezable: true as const }),
});

/** A worker without a pod. Names are unique in a cluster: it runs nowhere else. */
export const absent: Sighting = { state: "unknown", why: "its pod was gone", isAbsent: true };

/** A pod's state as its cluster reports it; `isOurs`: whether we killed it. */
export function sightingOf(seen: SeenPod, isOurs: boolean, canFreeze = false): Sighting {
  if (isOver(seen)) return { state: "ended", exit: exitOf(seen, isOurs) };
  if (seen.isRunning) return { state: "running", handle: handleOf(seen.workerId, seen, canFreeze) };
  // made by a server that has ended meanwhile, and never started
  return { state: "unknown", why: "its pod had not started", isAbsent: true };
}

/** Ends that are the cluster's doing, by Kubernetes' words for them. */
const disruptions: Readonly<Record<string, string>> = {
  PreemptionByScheduler: "the cluster gave its place to a pod of higher priority",
  DeletionByTaintManager: "its node stopped answering or was closed",
  DeletionByPodGC: "its node is gone",
  EvictionByEvictionAPI: "it was evicted from its node, which is being emptied",
  TerminationByKubelet: "its node ended it to keep running",
  Evicted: "its node evicted it",
  Preempting: "its node gave its place to a critical pod",
  NodeLost: "its node stopped answering",
  NodeShutdown: "its node was shut down",
  Terminated: "its node was shut down",
  Shutdown: "its node was shut down",
};

/** Kubelets' words for a worker that has used up its own disk. */
const ownLimit = /exceeds? the (total )?limit|usage of .* exceeds|exceeded its local ephemeral storage limit/i;

/** How a worker ended. What the cluster has done says nothing about how workers start. */
export function exitOf(seen: SeenPod, isOurs: boolean): Exit {
  const { ended, disruption, reason = "", message } = seen;
  const how = ended ? waysOf(ended.exitCode) : {};
  if (isOurs) return how;
  // what a worker has brought on itself is no disruption
  if (reason === "Evicted" && ownLimit.test(message ?? ""))
    return { ...how, note: `its node evicted it (${message?.trim()})`, cause: "memory" };
  const because = disruptions[disruption?.reason ?? ""] ?? disruptions[reason];
  if (because !== undefined || disruption) {
    const said = message ?? disruption?.message;
    return { ...how, note: `${because ?? "the cluster ended it"}${said ? ` (${said.trim()})` : ""}`, cause: "host" };
  }
  if (!ended)
    return { note: `its pod failed: ${[reason, message].filter(Boolean).join(": ") || seen.phase}`, cause: "host" };
  if (ended.reason === "OOMKilled") return { ...how, note: "it ran out of memory", cause: "memory" };
  if (/^(StartError|ContainerCannotRun)$/.test(ended.reason ?? ""))
    return { ...how, note: `its image could not be started: ${(ended.message ?? "").trim()}`, cause: "image" };
  // whoever deletes a pod ends its worker, which may have exited in order
  if (seen.goneBy !== undefined) return { ...how, note: "its pod was deleted by something else", cause: "host" };
  if (how.signal === "SIGKILL" && reason === "DeadlineExceeded")
    return { ...how, note: "its pod was told to stop, and did not within its grace", cause: "host" };
  if (how.signal === "SIGKILL")
    return { ...how, note: "it was killed (137), as the system does where memory runs out", cause: "memory" };
  return ended.exitCode === 126 || ended.exitCode === 127 ? { ...how, cause: "image" } : how;
}

/** A container that a signal has ended has 128 and its number as its code. */
function waysOf(exitCode: number): Exit {
  const [signal] = Object.entries(constants.signals).find(([, number]) => exitCode === 128 + number) ?? [];
  return signal === undefined ? { code: exitCode } : { signal };
}
