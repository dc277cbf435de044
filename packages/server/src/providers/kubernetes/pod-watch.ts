import type { Pod, PodList } from "kubernetes-types/core/v1.js";
import { realTime, type Signal } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { type Cluster, statusOf } from "./cluster.js";
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

/** The version that a watch goes on from is forgotten: list again. */
class Gone extends Error {}

/** Follows the pods of one service in a namespace by a list and a watch from there on. */
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

  /** Resolves at the next change of a worker's pod, after `ms`, or when the signal aborts. */
  async next(workerId: string, ms: number, signal: Signal): Promise<void> {
    const waiting = this.#awaiting.get(workerId) ?? new Set();
    this.#awaiting.set(workerId, waiting);
    const over = new AbortController();
    const end = () => over.abort();
    waiting.add(end);
    signal.addEventListener("abort", end);
    if (!signal.aborted) await realTime.sleep(ms, over.signal);
    signal.removeEventListener("abort", end);
    waiting.delete(end);
    if (waiting.size === 0) this.#awaiting.delete(workerId);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let version: string | undefined;
    let failures = 0;
    while (!signal.aborted) {
      try {
        version ??= await this.#list();
        if (failures > 0) this.#listener.reached(true, "");
        failures = 0;
        version = await this.#follow(version);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Gone || statusOf(error) === 410) version = undefined;
        else if (++failures === 1)
          this.#listener.reached(false, error instanceof Error ? error.message : String(error));
        const ms = Math.min(limits.clusterRetryMs * 2 ** Math.min(failures, 8), limits.clusterRetryMsMax);
        if (failures > 0) await realTime.sleep(ms, signal);
      }
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

  /** Follows changes until the watch ends. Resolves with the version to go on from. */
  async #follow(from: string): Promise<string> {
    const ending = realTime.abortAfter(limits.watchMs + limits.clusterAnswerMs);
    const signal = AbortSignal.any([ending, this.#closing.signal]);
    let version = from;
    const query = {
      labelSelector: this.#labelSelector,
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: from,
      timeoutSeconds: limits.watchMs / 1_000,
    };
    const stream = await this.#cluster.stream(this.#path, { query, signal, silenceMs: limits.watchSilenceMs });
    try {
      for await (const line of linesIn(stream, limits.watchLineBytesMax)) {
        const { type, object } = JSON.parse(line.toString("utf8")) as WatchEvent;
        if (type === "ERROR") throw object.code === 410 ? new Gone() : new Error("the watch of its pods has failed");
        version = object.metadata?.resourceVersion ?? version;
        if (type === "BOOKMARK") continue;
        if (type === "DELETED") this.#remove(seenPod(object));
        else this.#change(seenPod(object));
      }
    } finally {
      stream.destroy();
    }
    return version;
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
