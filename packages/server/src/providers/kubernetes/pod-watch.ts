import type { Pod, PodList } from "kubernetes-types/core/v1.js";
import { realTime, type Signal } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { type Cluster, ClusterRefusal, detailOf, statusOf } from "./api-server/cluster.js";
import { linesIn } from "./lines.js";
import { type SeenPod, seenPod } from "./seen-pod.js";

/** A line of a watch. */
interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: Pod & { readonly code?: number };
}

/** What happens to pods: changes, and removals with the last that was known. */
export interface PodListener {
  readonly changed: (seen: SeenPod) => void;
  readonly removed: (seen: SeenPod) => void;
  /** The cluster answers again, or does not; `why` is a sentence. */
  readonly reached: (isReached: boolean, why: string) => void;
}

/** Follows the pods of one service in a namespace by a list and watches from there on, one after the other. */
export class PodWatch {
  readonly #cluster: Cluster;
  readonly #path: string;
  readonly #labelSelector: string;
  readonly #listener: PodListener;
  readonly #closing = new AbortController();
  readonly #pods = new Map<string, SeenPod>();
  /** Called at the next change of a worker's pod. */
  readonly #awaiting = new Map<string, Set<() => void>>();
  #isBegun = false;

  constructor(cluster: Cluster, path: string, labelSelector: string, listener: PodListener) {
    this.#cluster = cluster;
    this.#path = path;
    this.#labelSelector = labelSelector;
    this.#listener = listener;
  }

  /** Begins with the first call. */
  begin(): void {
    if (!this.#isBegun) void this.#run();
    this.#isBegun = true;
  }

  close = (): void => this.#closing.abort();

  /** A worker's pod as last told; undefined if there is none, or nothing has been told yet. */
  get = (workerId: string): SeenPod | undefined => this.#pods.get(workerId);

  /** Resolves at the next change of a worker's pod, after `ms`, or when the signal aborts; true if there was a change. */
  async next(workerId: string, ms: number, signal: Signal): Promise<boolean> {
    const waiting = this.#awaiting.get(workerId) ?? new Set();
    this.#awaiting.set(workerId, waiting);
    const over = new AbortController();
    let isTold = false;
    const end = () => over.abort();
    const told = () => {
      isTold = true;
      end();
    };
    waiting.add(told);
    signal.addEventListener("abort", end);
    if (!signal.aborted) await realTime.sleep(ms, over.signal);
    signal.removeEventListener("abort", end);
    waiting.delete(told);
    if (waiting.size === 0) this.#awaiting.delete(workerId);
    return isTold;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let isAway = false;
    let version: string | undefined; // where a watch has ended in its own time: the next goes on from there
    for (let ms: number = limits.clusterRetryMs; !signal.aborted; ) {
      try {
        const from: string = version === undefined ? await this.#list() : this.#tellAll(version);
        version = undefined;
        if (isAway) this.#listener.reached(true, "");
        isAway = false;
        ms = limits.clusterRetryMs;
        version = await this.#follow(from);
      } catch (error) {
        if (signal.aborted) return;
        // an old version is forgotten
        if (statusOf(error) !== 410) {
          if (!isAway) this.#listener.reached(false, detailOf(error));
          isAway = true;
          ms = Math.min(ms * 2, limits.clusterRetryMsMax);
        }
      }
      await realTime.sleep(ms, signal);
    }
  }

  /** Reads all pods; reports those that went while nobody watched. Resolves with the version to watch from. */
  async #list(): Promise<string> {
    const { signal } = this.#closing;
    const there = new Map<string, SeenPod>();
    let version = "";
    for (let next: string | undefined, isFirst = true; isFirst || next; isFirst = false) {
      const query = { labelSelector: this.#labelSelector, limit: limits.clusterPageItems, continue: next };
      const page: PodList = await this.#cluster.ask("GET", this.#path, { query, signal });
      version = page.metadata?.resourceVersion ?? "";
      next = page.metadata?.continue || undefined;
      for (const each of page.items.map(seenPod)) there.set(each.workerId, each);
    }
    for (const [workerId, last] of [...this.#pods]) if (!there.has(workerId)) this.#remove(last);
    for (const each of there.values()) this.#change(each);
    return version;
  }

  /** Tells all pods again: what could not be done for one that has not changed since is tried again. */
  #tellAll(version: string): string {
    for (const each of [...this.#pods.values()]) this.#listener.changed(each);
    return version;
  }

  /** Follows changes from a version on until the watch ends; resolves with the version that it has come to. */
  async #follow(resourceVersion: string): Promise<string> {
    let reached = resourceVersion;
    const ending = realTime.abortAfter(limits.podWatchMs + limits.clusterAnswerMs);
    const signal = AbortSignal.any([ending, this.#closing.signal]);
    const query = {
      labelSelector: this.#labelSelector,
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion,
      timeoutSeconds: limits.podWatchMs / 1_000,
    };
    const stream = await this.#cluster.stream(this.#path, { query, signal, silenceMs: limits.podWatchSilenceMs });
    try {
      for await (const line of linesIn(stream, () => limits.podWatchLineBytesMax)) {
        const { type, object } = JSON.parse(line.toString("utf8")) as WatchEvent;
        if (type === "ERROR") throw new ClusterRefusal(object.code ?? 500, "", "the watch of its pods has failed");
        reached = object.metadata?.resourceVersion ?? reached;
        if (type === "BOOKMARK") continue;
        if (type === "DELETED") this.#remove(seenPod(object));
        else this.#change(seenPod(object));
      }
    } finally {
      stream.destroy();
    }
    return reached;
  }

  #change(seen: SeenPod): void {
    this.#pods.set(seen.workerId, seen);
    this.#listener.changed(seen);
    this.#tell(seen.workerId);
  }

  #remove(seen: SeenPod): void {
    this.#pods.delete(seen.workerId);
    this.#listener.removed(seen);
    this.#tell(seen.workerId);
  }

  #tell(workerId: string): void {
    for (const each of [...(this.#awaiting.get(workerId) ?? [])]) each();
  }
}
