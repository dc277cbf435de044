import type { Pod } from "kubernetes-types/core/v1.js";
import { realTime } from "../../clock.js";
import { isImageReference, noReference } from "../../domain/endpoints/image-reference.js";
import { limits } from "../../limits/index.js";
import { type ImageSpec, left, StartFailed, type Starting, StartUnsure } from "../../provider.js";
import { ClusterRefusal, isAway, statusOf } from "./api-server/cluster.js";
import { isOfAttempt } from "./pod.js";
import type { PodEvents } from "./pod-events.js";
import type { PodWatch } from "./pod-watch.js";
import { isOverdue, type Pods, SecretRefused } from "./pods.js";
import { exitOf, isOver, type SeenPod, seenPod } from "./seen-pod.js";
import { Patience, waitingFor } from "./waiting.js";

/** What is said of pods in events. */
interface Said {
  readonly autoscalers: PodEvents;
  readonly nodes: PodEvents;
}

/** Keeps what a pod has said that is about to be removed. */
type LastWords = (seen: SeenPod, pod: Pod) => Promise<void>;

const unending = new AbortController().signal;

/** One worker's start: from its pod's making until it runs. */
export class PodStart {
  readonly #pods: Pods;
  readonly #watch: PodWatch;
  readonly #spec: ImageSpec;
  readonly #starting: Starting;
  readonly #said: Said;
  readonly #patience: Patience;
  readonly #lastWords: LastWords;
  /** Of the pod that this start has made last. */
  #uid: string | undefined;
  /** Whether that pod has a node. */
  #isScheduled = false;
  /** Since when it has one. */
  #scheduledSince = Number.POSITIVE_INFINITY;
  /** The pod that has reached a phase. */
  readonly #reached: { placed?: string; image?: string } = {};
  /** Since when the cluster has not answered. */
  #awaySince: number | undefined;

  constructor(
    pods: Pods,
    watch: PodWatch,
    spec: ImageSpec,
    { starting, said, pullMs, lastWords }: { starting: Starting; said: Said; pullMs: number; lastWords: LastWords },
  ) {
    this.#pods = pods;
    this.#watch = watch;
    this.#spec = spec;
    this.#starting = starting;
    this.#said = said;
    this.#patience = new Patience(spec.from, pullMs);
    this.#lastWords = lastWords;
  }

  /**
   * Resolves with the pod when it runs. What is the cluster's affair (no room, a quota, a server that does not answer)
   * is waited for, and said; rejects with one sentence if the worker itself cannot be started, or is no longer wanted.
   */
  async run(): Promise<SeenPod> {
    const { from, env } = this.#spec;
    const { note, signal } = this.#starting;
    if (!isImageReference(from.image)) throw new StartFailed(noReference(from.image), "image");
    const bad = Object.keys(env).find((name) => !/^[-._a-zA-Z0-9]+$/.test(name));
    if (bad !== undefined)
      throw new StartFailed(
        `the variable '${bad}' cannot be passed to a pod: letters, digits, '-', '_' and '.' can`,
        "start",
      );
    try {
      for (let ms: number = limits.clusterRetryMs; ; ms = Math.min(ms * 2, limits.clusterRetryMsMax)) {
        this.#assertWanted();
        try {
          const seen = await this.#once();
          if (seen) return seen;
          this.#isScheduled = false;
        } catch (error) {
          this.#assertWanted();
          const words = isClusters(error);
          note(words, this.#isScheduled ? undefined : this.#isRefused(error) ? "full" : "waiting");
        }
        await realTime.sleep(ms, signal);
      }
    } catch (error) {
      if (signal.reason === left) throw new StartUnsure("another server goes on with its start");
      // what cannot be removed now is removed when it is reported
      await this.#clear().catch(() => {});
      throw error;
    }
  }

  /** Whether the cluster does not admit the pod, or has been away for so long that other places should be tried. */
  #isRefused(error: unknown): boolean {
    if (!isAway(error)) return isDenied(error);
    this.#awaySince ??= realTime.monotonicMs();
    return realTime.monotonicMs() - this.#awaySince >= limits.clusterAwayMs;
  }

  #assertWanted(): void {
    if (this.#starting.signal.aborted) throw new Error("it is not wanted any more");
  }

  /** Removes the pod that this start has made. */
  async #clear(): Promise<void> {
    const { workerId } = this.#spec;
    const pod = this.#uid === undefined ? undefined : await this.#pods.find(workerId);
    if (pod?.metadata?.uid !== this.#uid || !pod) return;
    const seen = seenPod(pod);
    if (this.#starting.signal.aborted && seen.isScheduled)
      await this.#lastWords(await this.#untilTold(seen), pod).catch(() => {});
    if (isOver(seen)) await this.#pods.remove(workerId, this.#uid);
    else await this.#pods.kill(workerId, this.#uid, seen);
  }

  /**
   * The pod once its node says that it runs, for a short while: it may have run a job before, and is not asked for its
   * log until then.
   */
  async #untilTold(seen: SeenPod): Promise<SeenPod> {
    const until = realTime.monotonicMs() + limits.podToldMs;
    let latest = seen;
    for (let ms: number = limits.podToldMs; ms > 0 && !latest.isRunning && !isOver(latest); ) {
      await this.#watch.next(seen.workerId, ms, unending);
      ms = until - realTime.monotonicMs();
      const told = this.#watch.get(seen.workerId);
      if (told?.uid === seen.uid) latest = told;
    }
    return latest;
  }

  /** Makes the pod and waits until it runs; undefined if the cluster has ended it before. */
  async #once(): Promise<SeenPod | undefined> {
    const { workerId, from, mounts, gpuWish } = this.#spec;
    const { note, reached, signal } = this.#starting;
    const hasVolume = mounts.length > 0;
    let seen: SeenPod | undefined = seenPod(await this.#made());
    const { uid } = seen;
    if (uid !== this.#uid) this.#isScheduled = false;
    this.#awaySince = undefined;
    // much may have been told of it while its secrets were made
    const told = this.#watch.get(workerId);
    if (told?.uid === uid) seen = told;
    this.#uid = uid;
    for (;;) {
      if (seen.isScheduled) this.#reach(uid, "placed");
      if (seen.hasImage) this.#reach(uid, "image");
      if (seen.isRunning) {
        reached("made");
        return seen;
      }
      if (isOver(seen)) return this.#ended(seen);
      const failure = this.#patience.failure(seen, realTime.monotonicMs());
      if (failure) throw failure;
      if (!seen.isScheduled) this.#scheduledSince = Number.POSITIVE_INFINITY;
      else this.#scheduledSince = Math.min(this.#scheduledSince, realTime.monotonicMs());
      this.#isScheduled = seen.isScheduled;
      // somebody has deleted it, which may have taken until its last pod had ended
      if (/persistentvolumeclaim .*not found/.test(seen.unschedulable ?? "")) await this.#pods.ensureClaims(this.#spec);
      const before = this.#watch.get(workerId);
      // at first a node may say something that passes: secrets are made after their pod
      const isSlow = !seen.hasImage && realTime.monotonicMs() >= this.#scheduledSince + limits.podSlowMs;
      const [scaleUp, ofNode, noVolume] = await Promise.all([
        seen.unschedulable === undefined ? undefined : this.#said.autoscalers.of(uid),
        isSlow ? this.#said.nodes.of(uid) : undefined,
        seen.isScheduled ? undefined : this.#pods.volumeTrouble(this.#spec),
      ]);
      const since = this.#watch.get(workerId);
      if (since !== before && since?.uid === uid) {
        seen = since;
        continue;
      }
      const waits =
        waitingFor(seen, from, { scaleUp, ofNode, noVolume, hasVolume, gpuWish }) ??
        `node ${seen.node} starts its container`;
      // a queue, or a node that is on its way, is worth waiting for
      const isFull = seen.unschedulable !== undefined && !seen.isNominated && !scaleUp?.isAsked;
      note(waits, seen.isScheduled ? undefined : isFull ? "full" : "waiting");
      const isTold = await this.#watch.next(workerId, limits.podLookMs, signal);
      this.#assertWanted();
      seen = await this.#latest(uid, isTold);
      if (!seen) return undefined;
      if (!isOverdue(seen)) continue;
      note(`its node ${seen.node} does not answer`);
      await this.#pods.kill(workerId, uid, seen);
      return undefined;
    }
  }

  /** Tells of a phase when its pod first reaches it. */
  #reach(uid: string, phase: "placed" | "image"): void {
    if (this.#reached[phase] === uid) return;
    this.#reached[phase] = uid;
    this.#starting.reached(phase);
  }

  /** The pod as the watch has just told it, else as it is now; undefined if it is gone. */
  async #latest(uid: string, isTold: boolean): Promise<SeenPod | undefined> {
    const told = isTold ? this.#watch.get(this.#spec.workerId) : undefined;
    if (told?.uid === uid) return told;
    const pod = await this.#pods.find(this.#spec.workerId);
    return pod?.metadata?.uid === uid ? seenPod(pod) : undefined;
  }

  /** One that this start has made whole, or that runs with our secret, is ours; any other makes way. */
  async #made(): Promise<Pod> {
    const { workerId } = this.#spec;
    for (;;) {
      let refusal: ClusterRefusal;
      try {
        return await this.#pods.make(this.#spec);
      } catch (error) {
        // a quota or a policy is asked before whether there is one of that name, which may hold the last of it
        const mayBeThere = error instanceof ClusterRefusal && (error.reason === "AlreadyExists" || isDenied(error));
        if (!mayBeThere || error instanceof SecretRefused) throw error;
        refusal = error;
      }
      this.#assertWanted();
      const there = await this.#pods.find(workerId);
      if (!there && isDenied(refusal)) throw refusal;
      const isWhole = there && (there.metadata?.uid === this.#uid || seenPod(there).isRunning);
      if (isWhole && isOfAttempt(there, this.#spec)) return there;
      if (there) await this.#pods.kill(workerId, there.metadata?.uid, seenPod(there));
      if (!(await this.#pods.untilGone(workerId, this.#starting.signal)))
        throw new ClusterRefusal(409, "Conflict", "an earlier pod of this worker is still ending");
    }
  }

  /** A container that has ended has started, unless it could not be; a pod that the cluster has ended is made again. */
  async #ended(seen: SeenPod): Promise<SeenPod | undefined> {
    const { note: why = "", cause } = exitOf(seen, false);
    if (seen.ended && cause === "image") throw new StartFailed(why || "its image has no such program", "image");
    if (seen.ended) return seen;
    this.#starting.note(why);
    await this.#pods.remove(this.#spec.workerId, seen.uid);
    await this.#pods.untilGone(this.#spec.workerId, this.#starting.signal);
    return undefined;
  }
}

/** Whether a quota or a policy does not admit the pod. Webhooks and policies may answer with a status of their own. */
const isDenied = (error: unknown): boolean =>
  statusOf(error) === 403 || (error instanceof ClusterRefusal && /\bdenied (the )?request\b/.test(error.message));

/** What the cluster says of a call that it may grant later; throws what is the worker's own affair. */
function isClusters(error: unknown): string {
  if (isAway(error)) return (error as Error).message;
  if (!(error instanceof ClusterRefusal)) throw error;
  const what = error instanceof SecretRefused ? "its pod's secret" : "its pod";
  if (isDenied(error)) return `the cluster does not admit ${what}: ${error.message}`;
  if (error.status === 404 || error.status === 409 || error.status === 401) return `the cluster: ${error.message}`;
  throw new StartFailed(`the cluster refuses ${what}: ${error.message}`, "start");
}
