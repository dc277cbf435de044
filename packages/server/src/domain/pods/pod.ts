import type { Endpoint, EndpointSettings } from "../endpoints/endpoint.js";
import type { Worker } from "../workers/worker.js";
import type { PodSettings } from "./pod-settings.js";

/** A pod: an endpoint of one worker, with what only pods have. */
export interface Pod extends Endpoint {
  readonly settings: EndpointSettings & { readonly type: "POD"; readonly pod: PodSettings };
}

export const isPod = (endpoint: Endpoint | undefined): endpoint is Pod => endpoint?.settings.pod !== undefined;

/** Whether its container has a volume of its own, kept over stops; with a network volume it has none. */
export const hasOwnVolume = ({ networkVolumeIds, pod }: Pod["settings"]): boolean =>
  networkVolumeIds.length === 0 && pod.container.volumeInGb > 0;

/** The size of its own volume, in GB. */
export const ownVolumeGb = (settings: Pod["settings"]): number =>
  hasOwnVolume(settings) ? settings.pod.container.volumeInGb : 0;

const ownVolume = /^pod-([a-z0-9]{14})$/;
/** The name of a pod's own volume on its host; no network volume has such a name. */
export const ownVolumeId = (podId: string): string => `pod-${podId}`;
export const podOfVolume = (volumeId: string): string | undefined => ownVolume.exec(volumeId)?.[1];

/** Settings of a pod that is to run, or to be stopped. */
export function turned(
  settings: Pod["settings"],
  desiredStatus: PodSettings["desiredStatus"],
  { at, by }: { at: number; by: string },
): Pod["settings"] {
  const workers = desiredStatus === "RUNNING" ? 1 : 0;
  const { stopAt: _, ...pod } = settings.pod; // a time to stop is for one run
  return {
    ...settings,
    workersMin: workers,
    workersMax: workers,
    pod: { ...pod, desiredStatus, changedAt: at, changedBy: by },
  };
}

/** What a pod does now. ERROR: its container keeps ending, and waits for its next start. */
export type PodState = "PROVISIONING" | "STARTING" | "RUNNING" | "EXITED" | "ERROR";

/** A pod's state, from its worker if it has one. */
export function podState(pod: Pod, worker: Worker | undefined): PodState {
  if (pod.settings.pod.desiredStatus === "EXITED") return "EXITED";
  const isUp = worker !== undefined && worker.wanted === "running" && worker.killAt === undefined;
  if (isUp && worker.readyAt !== undefined) return "RUNNING";
  if (pod.failedStarts > 0) return "ERROR";
  return isUp && (worker.placedAt !== undefined || worker.throttledAt === undefined) ? "STARTING" : "PROVISIONING";
}

/** The actions that a pod in this state can be given. */
export function actionsIn(state: PodState, locked: boolean): readonly string[] {
  const actions = actionsByState[state];
  return locked ? actions.filter((action) => action === "start") : actions;
}

const actionsByState: Readonly<Record<PodState, readonly string[]>> = {
  PROVISIONING: ["stop", "terminate"],
  STARTING: ["stop", "terminate"],
  RUNNING: ["stop", "restart", "terminate"],
  EXITED: ["start", "terminate"],
  ERROR: ["start", "stop", "terminate"],
};
