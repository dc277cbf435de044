import { existsSync } from "node:fs";
import type { Pod } from "kubernetes-types/core/v1.js";
import { realTime } from "../../clock.js";
import { hiddenTexts } from "../../domain/access/secret.js";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import type { Exit, WorkerHandle } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import {
  type Connect,
  type ImageSpec,
  type JobSecrets,
  type LogQuery,
  left,
  type Provider,
  type Sighting,
  type Starting,
} from "../../provider.js";
import { logPath } from "../log-files/log-file.js";
import { readLogFiles } from "../log-files/reading.js";
import { type Cluster, isAway } from "./api-server/cluster.js";
import type { Claims } from "./claims.js";
import { hiddenOf, installationLabel, nameOf, type PodSettings } from "./pod.js";
import { ofAutoscalers, ofNodes, PodEvents } from "./pod-events.js";
import { PodLog } from "./pod-log.js";
import { PodStart } from "./pod-start.js";
import { PodWatch } from "./pod-watch.js";
import { Pods } from "./pods.js";
import { absent, exitOf, handleOf, isOver, type SeenPod, seenPod, sightingOf } from "./seen-pod.js";

const ignored = () => {};
const unheard: Starting = { note: () => {}, reached: () => {}, signal: new AbortController().signal };

/** A cluster's namespace for workers, and how they are made there. */
export interface KubernetesOptions extends PodSettings {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly logsDir: string;
  /** Whether workers may be frozen, by a command in their pods. */
  readonly freezes?: boolean;
  /** Whether workers are reached through the API server, instead of at their pods' addresses. */
  readonly forwards?: boolean;
  /** How long an image may fail to be pulled before its worker's start has failed. */
  readonly pullMs?: number;
  /** Where volumes are kept; without it, their claims are there already. */
  readonly claims?: Claims;
  readonly jobSecrets?: JobSecrets;
  readonly warn?: (message: string) => void;
}

/** Runs workers as pods of a Kubernetes cluster. */
export class KubernetesProvider implements Provider<ImageSpec> {
  readonly connect: Connect | undefined;
  readonly #options: KubernetesOptions;
  readonly #pods: Pods;
  readonly #watch: PodWatch;
  readonly #said: { readonly autoscalers: PodEvents; readonly nodes: PodEvents };
  readonly #listeners = new Set<(workerId: string) => void>();
  /** Starts under way, with the secret of each: one with another secret is another start. */
  readonly #starting = new Map<string, { readonly secret: string; readonly done: Promise<WorkerHandle> }>();
  readonly #leaving = new AbortController();
  /** Workers that we killed: any other killed worker ran out of memory, or the cluster took it away. */
  readonly #killed = new Set<string>();
  /** How workers ended whose pods are gone. */
  readonly #ends = new Map<string, Exit>();
  readonly #freezable = new Map<string, { readonly uid: string; readonly canFreeze: boolean }>();
  readonly #logs = new Map<string, PodLog>();
  /** What is masked in the logs of workers that are about to start. */
  readonly #hidden = new Map<string, HiddenTexts>();

  constructor(options: KubernetesOptions) {
    const { cluster, namespace, installation, warn = () => {} } = options;
    this.#options = options;
    this.#pods = new Pods(cluster, namespace, options, options.claims);
    this.connect = options.forwards ? this.#pods.connect : undefined;
    const eventsOf = (kinds: typeof ofNodes) => new PodEvents(cluster, namespace, kinds);
    this.#said = { autoscalers: eventsOf(ofAutoscalers), nodes: eventsOf(ofNodes) };
    this.#watch = new PodWatch(cluster, this.#pods.path, `${installationLabel}=${installation}`, {
      changed: (seen) => this.#changed(seen),
      removed: (seen) => this.#removed(seen),
      reached: (isReached, why) => warn(isReached ? "the cluster answers again" : why),
    });
  }

  handleOf = ({ workerId }: ImageSpec): WorkerHandle => handleOf(workerId);

  start(spec: ImageSpec, starting: Starting = unheard): Promise<WorkerHandle> {
    const { workerId, env } = spec;
    const secret = env.RUNPOD_AI_API_KEY ?? "";
    const before = this.#starting.get(workerId);
    if (before?.secret === secret) return before.done;
    // the earlier one was left
    const after = (before?.done ?? Promise.resolve()).then(ignored, ignored);
    const signal = AbortSignal.any([starting.signal, this.#leaving.signal]);
    const done = after
      .then(() => this.#start(spec, { ...starting, signal }))
      .finally(() => {
        if (this.#starting.get(workerId)?.done === done) this.#starting.delete(workerId);
      });
    this.#starting.set(workerId, { secret, done });
    return done;
  }

  async #start(spec: ImageSpec, starting: Starting): Promise<WorkerHandle> {
    const { workerId, env, hidden } = spec;
    this.#watch.begin();
    this.#hidden.set(workerId, new HiddenTexts([env.RUNPOD_AI_API_KEY ?? "", ...hiddenTexts(env, hidden ?? [])]));
    this.#ends.delete(workerId);
    try {
      const { pullMs = limits.podPullMs } = this.#options;
      const seen = await new PodStart(this.#pods, this.#watch, spec, {
        starting,
        said: this.#said,
        pullMs,
        lastWords: (ending, pod) => this.#follow(ending, pod).then(() => this.#logEnded(workerId)),
      }).run();
      await this.#follow(seen);
      return handleOf(workerId, seen, await this.#canFreeze(seen));
    } catch (error) {
      this.#hidden.delete(workerId);
      throw error;
    }
  }

  async look(workerId: string): Promise<Sighting> {
    const seen = await this.#find(workerId);
    const exit = this.#ends.get(workerId);
    if (!seen) return exit ? { state: "ended", exit } : absent;
    return sightingOf(seen, this.#killed.has(workerId), seen.isRunning && (await this.#canFreeze(seen)));
  }

  /** A worker's pod, whose log is kept from now on; undefined if there is none. */
  async #find(workerId: string): Promise<SeenPod | undefined> {
    this.#watch.begin();
    const pod = await this.#pods.find(workerId);
    if (!pod) return undefined;
    const seen = seenPod(pod);
    if (seen.isRunning || seen.ended) await this.#follow(seen, pod);
    return seen;
  }

  /** Whether a pod's image has what freezes it. Asked once: it takes 0.1 s. */
  async #canFreeze({ workerId, uid }: SeenPod): Promise<boolean> {
    if (!this.#options.freezes) return false;
    const known = this.#freezable.get(workerId);
    if (known?.uid === uid) return known.canFreeze;
    const canFreeze = await this.#pods.signalAll(workerId, "0").catch((error) => (isAway(error) ? undefined : false));
    if (canFreeze !== undefined) this.#freezable.set(workerId, { uid, canFreeze }); // otherwise it is asked again
    return canFreeze ?? false;
  }

  pause = (workerId: string): Promise<void> => this.#signal(workerId, "STOP");
  resume = (workerId: string): Promise<void> => this.#signal(workerId, "CONT");

  async #signal(workerId: string, signal: "STOP" | "CONT"): Promise<void> {
    if (!this.#options.freezes) return;
    try {
      if (!(await this.#pods.signalAll(workerId, signal))) throw new Error("its image has no shell that could do it");
    } catch (error) {
      const pod = await this.#pods.find(workerId);
      if (pod && !isOver(seenPod(pod))) throw error;
    }
  }

  async stop(workerId: string): Promise<void> {
    // a frozen worker would not hear of it
    if (this.#freezable.get(workerId)?.canFreeze) await this.resume(workerId).catch(ignored);
    if (!(await this.#pods.stop(workerId))) this.#tell(workerId);
  }

  async kill(workerId: string, handle: WorkerHandle | undefined): Promise<void> {
    this.#killed.add(workerId);
    const uid = handle?.ref.uid;
    const isThere = await this.#pods.kill(
      workerId,
      typeof uid === "string" ? uid : undefined,
      this.#watch.get(workerId),
    );
    if (isThere) return;
    this.#killed.delete(workerId);
    this.#tell(workerId);
  }

  async logTail(workerId: string): Promise<string> {
    const lines: string[] = [];
    const query = { tail: limits.logTailLines, signal: unheard.signal };
    for await (const some of readLogFiles(this.#options.logsDir, workerId, query, () => true))
      lines.push(...some.map(({ text }) => text));
    return lines.join("\n").slice(-limits.logTailBytes);
  }

  /** A worker's lines from its files; a server that did not keep them before does from now on, while there is a pod. */
  async *logs(workerId: string, handle: WorkerHandle | undefined, query: LogQuery) {
    if (handle && !this.#logs.has(workerId) && !this.#ends.has(workerId))
      await this.#find(workerId).catch((error) => {
        if (!existsSync(logPath(this.#options.logsDir, workerId))) throw error;
      });
    await this.#logs.get(workerId)?.begun;
    const isOver = () => this.#logs.get(workerId)?.isComplete ?? true;
    yield* readLogFiles(this.#options.logsDir, workerId, query, isOver);
  }

  async hide(workerId: string, secret: string): Promise<void> {
    (this.#logs.get(workerId)?.secrets ?? this.#hidden.get(workerId))?.add(secret);
  }

  async forget(workerId: string): Promise<void> {
    const pod = await this.#pods.find(workerId);
    if (pod && !isOver(seenPod(pod)) && seenPod(pod).isRunning) return;
    // what cannot be read now never can be: its node is gone
    await this.#logEnded(workerId);
    this.#logs.get(workerId)?.leave();
    if (pod) await this.#pods.remove(workerId, pod.metadata?.uid);
    this.#logs.delete(workerId);
    for (const each of [this.#killed, this.#ends, this.#hidden, this.#freezable]) each.delete(workerId);
  }

  onEnd(listener: (workerId: string) => void): () => void {
    this.#listeners.add(listener);
    this.#watch.begin(); // it finds what is left of earlier servers
    return () => void this.#listeners.delete(listener);
  }

  async leave(): Promise<void> {
    this.#leaving.abort(left);
    this.#watch.close();
    for (const log of this.#logs.values()) log.leave();
    await Promise.all([...this.#logs.values()].map(({ complete }) => complete));
    await this.#options.cluster.close();
  }

  #changed(seen: SeenPod): void {
    if (isOver(seen)) void this.#report(seen.workerId);
    // one that nobody here has asked for yet may not be wanted any more
    else if (!this.#starting.has(seen.workerId) && !this.#logs.has(seen.workerId)) this.#tell(seen.workerId);
  }

  #removed(seen: SeenPod): void {
    const { workerId } = seen;
    this.#freezable.delete(workerId);
    const isDone = isOver(seen);
    if (this.#logs.has(workerId) && (isDone || seen.disruption))
      this.#noteEnd(workerId, exitOf(seen, isDone && this.#killed.has(workerId)));
    void this.#report(workerId).then(() => {
      if (this.#logs.get(workerId)?.uid === seen.uid) this.#logs.delete(workerId);
    });
  }

  /** Remembers an end until it is asked for. Servers that tend other hosts never ask. */
  #noteEnd(workerId: string, exit: Exit): void {
    this.#ends.set(workerId, exit);
    if (this.#ends.size > limits.podEndsMax) this.#ends.delete(this.#ends.keys().next().value as string);
  }

  /** Reports an end once the log is complete. */
  async #report(workerId: string): Promise<void> {
    await this.#logEnded(workerId);
    this.#tell(workerId);
  }

  /** Waits for a while for the rest of a worker's log, of which no more comes. */
  async #logEnded(workerId: string): Promise<void> {
    const log = this.#logs.get(workerId);
    if (!log) return;
    log.end();
    const isLate = new AbortController();
    await Promise.race([log.complete, realTime.sleep(limits.podLogsMs, isLate.signal)]);
    isLate.abort();
  }

  #tell(workerId: string): void {
    for (const listener of this.#listeners) listener(workerId);
  }

  /** Keeps a worker's log from now on. One that an earlier server has started may have secrets to mask. */
  async #follow(seen: SeenPod, pod?: Pod): Promise<void> {
    const { workerId, uid } = seen;
    const isFollowed = () => this.#logs.get(workerId)?.uid === uid;
    if (isFollowed()) return;
    const secrets = this.#hidden.get(workerId) ?? (await this.#secretsIn(pod));
    if (isFollowed()) return;
    // of an earlier pod, which two writers of one file would mix with this one
    const before = this.#logs.get(workerId);
    before?.leave();
    await before?.complete;
    if (isFollowed()) return;
    const { cluster, logsDir } = this.#options;
    const more = this.#options.jobSecrets?.(workerId) ?? (async () => []);
    const path = `${this.#pods.path}/${nameOf(workerId)}/log`;
    const log = new PodLog({ cluster, path, logsDir, workerId, uid, secrets, more, isLate: pod !== undefined });
    this.#logs.set(workerId, log);
    this.#hidden.delete(workerId);
    if (seen.ended) log.end();
  }

  async #secretsIn(pod: Pod | undefined): Promise<HiddenTexts> {
    const env = pod ? await this.#pods.environmentOf(pod) : {};
    return new HiddenTexts([env.RUNPOD_AI_API_KEY ?? "", ...hiddenTexts(env, pod ? hiddenOf(pod) : [])]);
  }
}
