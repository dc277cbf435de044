import { topics } from "../../bell.js";
import { type Action, changed, deleted, updated } from "../../domain/access/audit.js";
import { type ApiKey, isVisible } from "../../domain/access/key.js";
import { changesWorkers } from "../../domain/endpoints/template.js";
import { ownVolumeGb, type Pod, turned } from "../../domain/pods/pod.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { seesMore, visiblePods } from "../access/visible.js";
import { checkKept } from "../check-kept.js";
import type { Needs } from "../needs.js";
import { checkImage } from "../templates/check-image.js";
import { keptGb, withinQuota } from "../usage/quotas.js";
import { stopWorker } from "../workers/worker-life.js";
import { changedPodSettings, newPodSettings, type PodInput } from "./pod-settings.js";

type Saving = Needs<"registry" | "here" | "clock" | "ids" | "bell" | "emit" | "tallies" | "jobs" | "reader">;

/** The caller's pod, whose keys of chosen endpoints see none. Another user's is refused exactly like an unknown one. */
export function ownPod({ registry }: Needs<"registry">, caller: ApiKey, id: string): Pod {
  seesMore(caller, "pods");
  const pod = registry.pod(id);
  if (!pod || !isVisible(caller, pod)) throw podNotFound(id);
  return pod;
}

/** The caller's pod, also if another server has just made it. */
export async function findPod(needs: Needs<"registry">, caller: ApiKey, id: string): Promise<Pod> {
  seesMore(caller, "pods");
  await needs.registry.known("endpoint", id, () => needs.registry.pod(id));
  return ownPod(needs, caller, id);
}

const podNotFound = (id: string) =>
  new Refusal("NOT_FOUND", `There is no pod '${id.slice(0, 80)}' for this key; the list of pods shows yours.`);

/** Makes a pod, which runs as soon as there is a place for it. */
export async function createPod(needs: Saving, asking: Caller, input: PodInput): Promise<Pod> {
  seesMore(asking, "pods");
  await checkImage(needs, newPodSettings(needs, asking, input).pod.container);
  return changeAs(needs, asking, async (caller) => {
    const has = visiblePods(needs, caller).length;
    withinQuota(needs, caller.ownerNo, "pods", { has });
    if (has >= limits.podsPerUserMax)
      throw new Refusal("IN_USE", `A user may have ${limits.podsPerUserMax} pods: delete one first.`);
    const settings = newPodSettings(needs, caller, input);
    checkKept(needs, caller.ownerNo, settings);
    withinVolumes(needs, caller.ownerNo, ownVolumeGb(settings));
    const id = needs.ids.resource();
    const template = { ...settings.pod.container };
    auditing.note(changed("pod.create", id, undefined, recorded(settings)));
    const made = { id, ownerNo: caller.ownerNo, settings, template, createdAt: needs.clock.now() };
    const pod = (await needs.registry.createEndpoint(made)) as Pod;
    needs.bell.ring("demand");
    return pod;
  });
}

/** Changes only what was sent. A pod that runs is made anew if its container changes; its volume is kept. */
export async function updatePod(needs: Saving, asking: Caller, pod: Pod, input: PodInput): Promise<Pod> {
  const draft = changedPodSettings(needs, asking, pod, input);
  if (input.imageName) await checkImage(needs, draft.pod.container);
  return changeAs(needs, asking, async (caller) => {
    const current = ownPod(needs, caller, pod.id);
    return savePod(needs, current, changedPodSettings(needs, caller, current, input), {
      action: "pod.update",
      why: "its pod was changed",
    });
  });
}

/** Saves a pod's settings within a change. A worker that is made of something else by now is stopped. */
export async function savePod(
  needs: Saving,
  pod: Pod,
  settings: Pod["settings"],
  { action, why, isAnew = false }: { action: Action; why: string; isAnew?: boolean },
): Promise<Pod> {
  checkKept(needs, pod.ownerNo, settings, pod.settings);
  withinVolumes(needs, pod.ownerNo, ownVolumeGb(settings) - ownVolumeGb(pod.settings));
  const before = { ...recorded(pod.settings), failedStarts: pod.failedStarts };
  const after = { ...recorded(settings), failedStarts: 0 };
  auditing.note(updated(action, pod.id, before, after));
  const isChanged =
    changesWorkers(pod.settings.pod.container, settings.pod.container) ||
    JSON.stringify([pod.settings.env, pod.settings.gpuCount]) !== JSON.stringify([settings.env, settings.gpuCount]);
  const release = isChanged ? { template: settings.pod.container, madeAt: needs.clock.now() } : undefined;
  const saved = (await needs.registry.saveEndpoint(pod, settings, release)) as Pod;
  if (isChanged || isAnew || settings.workersMax === 0) await stopPodWorkers(needs, saved, why);
  needs.bell.ring(topics.demand(pod.no));
  return saved;
}

async function stopPodWorkers(needs: Saving, { no }: Pod, why: string): Promise<void> {
  for (const worker of needs.registry.workersOf(no)) await stopWorker(needs, worker, why, needs.here.stopGraceMs);
}

/** Refuses a pod whose own volume, `more` GB larger than now, does not fit into its user's quota. */
const withinVolumes = (needs: Saving, ownerNo: number, more: number): void =>
  withinQuota(needs, ownerNo, "volumesGb", { has: keptGb(needs, ownerNo), more });

/** What a user may have of a pod: run, stopped, or made anew. */
export type PodAct = "start" | "stop" | "restart" | "reset";

const acts = {
  start: { status: "RUNNING", by: "Started by user", why: "its pod was started", isAnew: false },
  stop: { status: "EXITED", by: "Stopped by user", why: "its pod was stopped", isAnew: false },
  restart: { status: "RUNNING", by: "Restarted by user", why: "its pod was restarted", isAnew: true },
  reset: { status: "RUNNING", by: "Reset by user", why: "its pod was reset", isAnew: true },
} as const;

/**
 * Starts, stops, restarts or resets a pod. Starting one that runs, or stopping one that is stopped, changes nothing.
 * `gpuCount`: how many GPUs it gets from now on.
 */
export function actOnPod(
  needs: Saving,
  asking: Caller,
  pod: Pod,
  act: PodAct,
  { gpuCount }: { gpuCount?: number } = {},
): Promise<Pod> {
  return changeAs(needs, asking, async (caller) => {
    const current = ownPod(needs, caller, pod.id);
    const { status, by, why, isAnew } = acts[act];
    if (act !== "start") mayEnd(current);
    if (act === "restart" && current.settings.pod.desiredStatus === "EXITED")
      throw new Refusal("INVALID_STATE", "The pod is stopped: start it instead.");
    const hasSame = gpuCount === undefined || gpuCount === current.settings.gpuCount;
    const next = hasSame ? current : { settings: changedPodSettings(needs, caller, current, { gpuCount }) };
    if (!isAnew && current.settings.pod.desiredStatus === status && next === current && current.failedStarts === 0)
      return current;
    const settings = turned(next.settings, status, { at: needs.clock.now(), by });
    return savePod(needs, current, settings, { action: `pod.${act}`, why, isAnew });
  });
}

/** Refuses to stop, reset or delete a locked pod. */
function mayEnd({ settings }: Pod): void {
  if (settings.pod.locked)
    throw new Refusal("INVALID_STATE", 'The pod is locked: send PATCH with "locked": false first.');
}

/** Deletes a pod with its own volume; a network volume stays. */
export function deletePod(
  needs: Saving,
  asking: Caller,
  pod: Pod,
  { isLockIgnored = false }: { isLockIgnored?: boolean } = {},
): Promise<void> {
  return changeAs(needs, asking, async (caller) => {
    const current = needs.registry.pod(pod.id);
    if (current?.ownerNo !== pod.ownerNo || current.deletedAt !== undefined) throw podNotFound(pod.id);
    if (!isLockIgnored) mayEnd(current);
    await removePod(needs, current, current.ownerNo === caller.ownerNo);
  });
}

/**
 * Deletes a pod within a change, of its owner or of somebody else. Its worker stops, and its host removes its volume
 * afterwards.
 */
export async function removePod(needs: Needs<"registry" | "clock" | "bell">, pod: Pod, isOwn: boolean): Promise<void> {
  auditing.note(deleted("pod.delete", pod.id, recorded(pod.settings), isOwn));
  await needs.registry.removeEndpoint(pod, needs.clock.now());
  needs.bell.ring(topics.demand(pod.no));
}

/** What the audit log shows of a pod: its container's fields beside its own. */
const recorded = ({ pod, ...settings }: Pod["settings"]) => {
  const { container, ...own } = pod;
  const { name: _, env: __, ...made } = container;
  return { ...settings, ...made, ...own };
};
