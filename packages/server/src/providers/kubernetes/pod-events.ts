import type { Event, EventList } from "kubernetes-types/core/v1.js";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { type Cluster, statusOf } from "./api-server/cluster.js";

/** What is said of a pod in an event. */
export interface SaidOfPod {
  /** Whether it is an autoscaler that has asked for a node. */
  readonly isAsked: boolean;
  readonly words: string;
}

/** Which events are read: a selector of their fields. */
interface Kind {
  readonly of: string;
  readonly isAsked: boolean;
}

/** What nodes say of pods that they cannot start: a volume, a secret or a network is not to be had. */
export const ofNodes: readonly Kind[] = [
  { of: "reason=FailedMount", isAsked: false },
  { of: "reason=FailedAttachVolume", isAsked: false },
  { of: "reason=FailedCreatePodSandBox", isAsked: false },
];

/**
 * What autoscalers say of pods without a node, that they have asked for one or why they have not: the Cluster Autoscaler,
 * clouds' own, and Karpenter.
 */
export const ofAutoscalers: readonly Kind[] = [
  { of: "reason=NotTriggerScaleUp", isAsked: false },
  { of: "reason=FailedScaleUp", isAsked: false },
  { of: "reason=FailedScheduling,source=karpenter", isAsked: false },
  { of: "reason=TriggeredScaleUp", isAsked: true },
  { of: "reason=Nominated", isAsked: true },
];

/** Reads events of a namespace's pods while some of them wait: one reading for all of them. */
export class PodEvents {
  readonly #cluster: Cluster;
  readonly #path: string;
  readonly #kinds: readonly Kind[];
  #byPod: ReadonlyMap<string, SaidOfPod & { readonly at: number }> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<unknown> | undefined;

  constructor(cluster: Cluster, namespace: string, kinds: readonly Kind[]) {
    this.#cluster = cluster;
    this.#kinds = kinds;
    this.#path = `/api/v1/namespaces/${namespace}/events`;
  }

  /** What is said of a pod; undefined if nothing is, or the events cannot be read now. */
  async of(uid: string): Promise<SaidOfPod | undefined> {
    const now = realTime.monotonicMs();
    if (now - this.#readAt >= limits.scaleUpsMs) {
      this.#readAt = now;
      const reading = this.#read().catch((error) => {
        // without the right to list events, there is no need to ask often
        if (statusOf(error) === 403) this.#readAt = now + limits.scaleUpsBarredMs;
      });
      // starts go on while the cluster is slow to answer
      this.#reading = Promise.race([reading, realTime.sleep(limits.scaleUpsAnswerMs)]);
    }
    await this.#reading;
    const said = this.#byPod.get(uid);
    return said && said.at >= realTime.wallMs() - limits.scaleUpValidMs ? said : undefined;
  }

  async #read(): Promise<void> {
    const found = new Map<string, SaidOfPod & { readonly at: number }>();
    for (const { of, isAsked } of this.#kinds) {
      for (const event of await this.#events(of)) {
        const { uid = "" } = event.involvedObject;
        const at = timeOf(event);
        if (at >= (found.get(uid)?.at ?? 0)) found.set(uid, { isAsked, words: event.message ?? of, at });
      }
    }
    this.#byPod = found;
  }

  async #events(of: string): Promise<Event[]> {
    const found: Event[] = [];
    let next: string | undefined;
    do {
      const query = {
        fieldSelector: `involvedObject.kind=Pod,${of}`,
        limit: limits.clusterPageItems,
        continue: next,
      };
      const { items, metadata } = await this.#cluster.ask<EventList>("GET", this.#path, { query });
      found.push(...items);
      next = metadata?.continue || undefined;
    } while (next && found.length < limits.scaleUpsMax);
    return found;
  }
}

/** When an event happened last, in ms. */
export const timeOf = ({ lastTimestamp, eventTime, metadata }: Event): number =>
  Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? "") || 0;
