import type { EventList, PersistentVolumeClaim, PersistentVolumeClaimList } from "kubernetes-types/core/v1.js";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { Mount } from "../../provider.js";
import { type Cluster, ClusterRefusal, statusOf } from "./api-server/cluster.js";
import { claimOf, installationLabel } from "./pod.js";
import { timeOf } from "./pod-events.js";

/** How claims are made. */
export interface ClaimSettings {
  readonly installation: string;
  readonly storageClass: string | undefined;
  readonly accessMode: string;
  /** The cluster's name. */
  readonly cluster: string;
  readonly warn?: (message: string) => void;
}

const volumeLabel = "millrace.volume";

/** The claims that stand for volumes in a cluster. */
export class Claims {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #path: string;
  readonly #settings: ClaimSettings;
  /** What was said of claims that cannot grow, by name. */
  readonly #told = new Map<string, string>();
  /** What was last found out of claims without storage, by name: many workers may wait for one. */
  readonly #troubles = new Map<string, { readonly at: number; readonly found: Promise<string | undefined> }>();

  constructor(cluster: Cluster, namespace: string, settings: ClaimSettings) {
    this.#cluster = cluster;
    this.#namespace = `/api/v1/namespaces/${namespace}`;
    this.#path = `${this.#namespace}/persistentvolumeclaims`;
    this.#settings = settings;
  }

  /** The name by which people find a volume's claim. */
  nameOf = (volumeId: string): string => `the claim ${claimOf(volumeId)} of the cluster '${this.#settings.cluster}'`;

  /** Makes a volume's claim unless it is there; one that is smaller than its volume now is enlarged. */
  async ensure({ volumeId, sizeGb }: Mount): Promise<void> {
    if (sizeGb === undefined) return;
    const { installation, storageClass, accessMode } = this.#settings;
    const body: PersistentVolumeClaim = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: {
        name: claimOf(volumeId),
        labels: {
          "app.kubernetes.io/managed-by": "millrace",
          [installationLabel]: installation,
          [volumeLabel]: volumeId,
        },
      },
      spec: {
        accessModes: [accessMode],
        resources: { requests: { storage: `${sizeGb}G` } },
        ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
      },
    };
    try {
      await this.#cluster.ask("POST", this.#path, { body });
    } catch (error) {
      // a quota, which may itself be in conflict, is asked before whether it is there
      const mayBeThere = statusOf(error) === 409 || statusOf(error) === 403;
      if (!mayBeThere || !(await this.#find(claimOf(volumeId)))) throw error;
      await this.#enlarge(claimOf(volumeId), sizeGb);
    }
  }

  async #find(name: string): Promise<PersistentVolumeClaim | undefined> {
    return this.#cluster.ask<PersistentVolumeClaim>("GET", `${this.#path}/${name}`).catch((error) => {
      if (statusOf(error) !== 404) throw error;
      return undefined;
    });
  }

  /** A claim that cannot grow is used as it is: a worker that needs the space will say so. */
  async #enlarge(name: string, sizeGb: number): Promise<void> {
    const path = `${this.#path}/${name}`;
    const has = (await this.#find(name))?.spec?.resources?.requests?.storage ?? "";
    if (bytesOf(has) >= bytesOf(`${sizeGb}G`)) return;
    const body = { spec: { resources: { requests: { storage: `${sizeGb}G` } } } };
    try {
      await this.#cluster.ask("PATCH", path, { body, type: "application/merge-patch+json" });
    } catch (error) {
      if (!(error instanceof ClusterRefusal)) throw error;
      const words = `the claim ${name} has ${has} and cannot get the ${sizeGb} GB of its volume: ${error.message}`;
      if (this.#told.get(name) !== words) this.#settings.warn?.(words);
      this.#told.set(name, words);
    }
  }

  /** Why a volume's claim has no storage, in words with the cluster's own; undefined if it has, or nothing is said of it. */
  async troubleOf(volumeId: string): Promise<string | undefined> {
    const now = realTime.monotonicMs();
    for (const [name, { at }] of this.#troubles) if (now - at >= limits.scaleUpsMs) this.#troubles.delete(name);
    const name = claimOf(volumeId);
    const known = this.#troubles.get(name) ?? { at: now, found: this.#trouble(name).catch(() => undefined) };
    this.#troubles.set(name, known);
    return known.found;
  }

  async #trouble(name: string): Promise<string | undefined> {
    const claim = await this.#find(name);
    if (!claim || claim.status?.phase === "Bound") return undefined;
    const about = `involvedObject.kind=PersistentVolumeClaim,involvedObject.name=${name},type=Warning`;
    const query = { fieldSelector: about, limit: limits.clusterPageItems };
    const { items } = await this.#cluster.ask<EventList>("GET", `${this.#namespace}/events`, { query });
    const own = items.filter(({ involvedObject }) => involvedObject.uid === claim.metadata?.uid);
    const last = own.sort((a, b) => timeOf(a) - timeOf(b)).at(-1);
    return (
      last && `its volume has no storage yet: of the claim ${name} the cluster says: ${last.message ?? last.reason}`
    );
  }

  /** Removes a volume's claim, and by that what it holds; none: it was never used here. */
  async remove(volumeId: string): Promise<void> {
    this.#told.delete(claimOf(volumeId));
    await unless(404, this.#cluster.ask("DELETE", `${this.#path}/${claimOf(volumeId)}`));
  }

  /** The volumes that have a claim here. */
  async list(): Promise<string[]> {
    const found: string[] = [];
    const labelSelector = `${installationLabel}=${this.#settings.installation}`;
    for (let next: string | undefined, isFirst = true; isFirst || next; isFirst = false) {
      const query = { labelSelector, limit: limits.clusterPageItems, continue: next };
      const page = await this.#cluster.ask<PersistentVolumeClaimList>("GET", this.#path, { query });
      next = page.metadata?.continue || undefined;
      for (const { metadata } of page.items) found.push(metadata?.labels?.[volumeLabel] ?? "");
    }
    return found.filter(Boolean);
  }
}

const units: Readonly<Record<string, number>> = {
  ...Object.fromEntries(["", "k", "M", "G", "T", "P"].map((unit, at) => [unit, 1_000 ** at])),
  ...Object.fromEntries(["Ki", "Mi", "Gi", "Ti", "Pi"].map((unit, at) => [unit, 1_024 ** (at + 1)])),
};

/** The bytes of a quantity, which Kubernetes may have written anew: 1000G as 1T. Infinite if it cannot be read. */
export function bytesOf(quantity: string): number {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)([kMGTP]|[KMGTP]i)?$/.exec(quantity) ?? [];
  return number === undefined ? Number.POSITIVE_INFINITY : Number(number) * (units[unit] as number);
}

/** Waits for a call; this status is as good. */
async function unless(status: number, asked: Promise<unknown>): Promise<void> {
  await asked.catch((error) => {
    if (statusOf(error) !== status) throw error;
  });
}
