import { type GpuWish, StartFailed } from "../../provider.js";
import { pullFailure, pullTrouble } from "../images/pull-failures.js";
import type { SaidOfPod } from "./pod-events.js";
import type { SeenPod } from "./seen-pod.js";

/** What a worker waits for. */
export interface Awaited {
  readonly image: string;
  readonly auth?: { readonly username: string; readonly password: string } | undefined;
}

const cannotPull = /^(ErrImagePull|ImagePullBackOff|ErrImageNeverPull|RegistryUnavailable|ImageInspectError)$/;
const configTrouble = /^(CreateContainerConfigError|CreateContainerError|RunContainerError)$/;

/** What passes by itself: a pod's secrets are made after it, and a node may be busy. */
const passing = /\b(secret|configmap)s?\b|deadline|timed? ?out|unavailable/i;
/** How much longer than for its image a pod is waited for that its node cannot start. */
const configFactor = 4;

/** The scheduler's words for claims that no node has to do with. */
const claimTrouble =
  /\bunbound immediate PersistentVolumeClaims|\bpersistentvolumeclaim "[^"]*" (not found|is being deleted)/;

/** The scheduler's words where it waits for a volume, and not for a node. */
const volumeTrouble = /PersistentVolumeClaim|volume binding|VolumeBinding|binding volumes/i;

/** The scheduler's words where a volume keeps a pod to its own node, or to those that may have it. */
const volumeElsewhere =
  /PersistentVolume's node affinity|volume node affinity conflict|didn't match pod affinity rules/;

const gpuTypesNamed = 3;

/** What else is known of a pod. */
interface Known {
  readonly hasVolume?: boolean;
  readonly gpuWish?: GpuWish | undefined;
  /** What an autoscaler says of one without a node. */
  readonly scaleUp?: SaidOfPod | undefined;
  /** What its node says of one that does not get on. */
  readonly ofNode?: SaidOfPod | undefined;
  /** Why its volume cannot be mounted, in words. */
  readonly noVolume?: string | undefined;
}

/** What a pod that has not started waits for, in words; undefined if nothing special. */
export function waitingFor(seen: SeenPod, { image, auth }: Awaited, known: Known = {}): string | undefined {
  const { scaleUp, ofNode, noVolume, hasVolume, gpuWish } = known;
  if (seen.isGated) return "a queue of the cluster has not admitted its pod yet";
  const isOfVolume = seen.unschedulable === undefined || volumeTrouble.test(seen.unschedulable);
  if (noVolume !== undefined && !seen.isScheduled && isOfVolume) return inOneLine(noVolume);
  if (seen.unschedulable !== undefined) {
    const lacks = inOneLine(seen.unschedulable);
    if (claimTrouble.test(lacks)) return `its volume cannot be mounted yet: ${lacks}`;
    const kept = hasVolume && volumeElsewhere.test(lacks) ? " that can mount its volume" : "";
    const full = `no node of the cluster${withGpus(gpuWish)}${kept} has room for it`;
    if (scaleUp?.isAsked) return `${full}, and its autoscaler has asked for one: ${lacks}`;
    const none = scaleUp ? `; its autoscaler adds none: ${inOneLine(scaleUp.words)}` : "";
    return `${full}: ${lacks}${none}`;
  }
  const { reason = "", message = "" } = seen.waiting ?? {};
  if (cannotPull.test(reason))
    return `the image '${image}' cannot be pulled yet: ${pullTrouble(message || reason, auth)}`;
  if (configTrouble.test(reason)) return `its pod cannot be started yet: ${message || reason}`;
  if (seen.isScheduled && !seen.hasImage && ofNode)
    return `node ${seen.node} cannot start its pod yet: ${inOneLine(ofNode.words)}`;
  if (seen.isScheduled && !seen.hasImage) return `node ${seen.node} pulls the image '${image}', or mounts its volume`;
  return seen.isScheduled ? undefined : "the cluster looks for a node";
}

/** Which GPUs a node must have: the scheduler only says that nodes do not match an affinity. */
function withGpus({ types, minCuda }: GpuWish = { count: 0, types: [] }): string {
  const named = types.slice(0, gpuTypesNamed).join(" or ") + (types.length > gpuTypesNamed ? " or others" : "");
  const cuda = minCuda === undefined ? "" : `a driver for CUDA ${minCuda}`;
  const both = [named, cuda].filter(Boolean).join(" and ");
  return both && ` with ${both}`;
}

const inOneLine = (words: string): string => words.replace(/\s+/g, " ").trim();

/** Judges whether a start that waits has failed; it remembers since when an image could not be pulled. */
export class Patience {
  readonly #awaited: Awaited;
  #pullFailedAt: number | undefined;
  #configFailedAt: number | undefined;
  /** The registry's words; later the kubelet only says that it waits before it tries again. */
  #registrySaid = "";

  readonly #pullMs: number;

  constructor(awaited: Awaited, pullMs: number) {
    this.#awaited = awaited;
    this.#pullMs = pullMs;
  }

  /** Why the start has failed; undefined if it may still succeed. `now` in ms of any clock. */
  failure({ waiting }: SeenPod, now: number): StartFailed | undefined {
    const { image, auth } = this.#awaited;
    const { reason = "", message = "" } = waiting ?? {};
    if (reason === "InvalidImageName")
      return new StartFailed(`'${image}' is not a valid image name: ${message}`, "image");
    if (reason === "ErrImageNeverPull")
      return new StartFailed(`the image '${image}' is not on its node, and may not be pulled: ${message}`, "image");
    const isConfigTrouble = configTrouble.test(reason) && !passing.test(message);
    this.#configFailedAt = isConfigTrouble ? (this.#configFailedAt ?? now) : undefined;
    if (this.#configFailedAt !== undefined && now >= this.#configFailedAt + configFactor * this.#pullMs)
      return new StartFailed(`its pod cannot be started: ${message || reason}`, "image");
    if (!cannotPull.test(reason)) {
      this.#pullFailedAt = undefined;
      return undefined;
    }
    if (reason !== "ImagePullBackOff" || this.#registrySaid === "") this.#registrySaid = message;
    this.#pullFailedAt ??= now;
    if (now < this.#pullFailedAt + this.#pullMs) return undefined;
    return pullFailure(this.#registrySaid, { image, auth, where: "its node" });
  }
}
