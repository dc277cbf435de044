import type { PersistentVolumeClaim, PersistentVolumeClaimList } from "kubernetes-types/core/v1.js";
import { limits } from "../../limits/index.js";
import type { Mount } from "../../provider.js";
import { type Cluster, ClusterRefusal, statusOf } from "./cluster.js";
import { claimOf, installationLabel } from "./pod.js";

/** How claims are made. */
export interface ClaimSettings {
  readonly installation: string;
  readonly storageClass: string | undefined;
  readonly accessMode: string;
  readonly warn?: (message: string) => void;
}

const volumeLabel = "millrace.volume";

/** The claims that stand for volumes in a cluster. */
export class Claims {
  readonly #cluster: Cluster;
  readonly #path: string;
  readonly #settings: ClaimSettings;

  constructor(cluster: Cluster, namespace: string, settings: ClaimSettings) {
    this.#cluster = cluster;
    this.#path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
    this.#settings = settings;
  }

  /** The name by which people find a volume's claim. */
  nameOf = (volumeId: string): string => `the claim ${claimOf(volumeId)} of the cluster`;

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
      if (statusOf(error) !== 409) throw error;
      await this.#enlarge(claimOf(volumeId), sizeGb);
    }
  }

  /** A claim that cannot grow is used as it is: a worker that needs the space will say so. */
  async #enlarge(name: string, sizeGb: number): Promise<void> {
    const path = `${this.#path}/${name}`;
    const { spec } = await this.#cluster.ask<PersistentVolumeClaim>("GET", path);
    const [, gb] = /^(\d+)G$/.exec(spec?.resources?.requests?.storage ?? "") ?? [];
    if (gb === undefined || Number(gb) >= sizeGb) return;
    const body = { spec: { resources: { requests: { storage: `${sizeGb}G` } } } };
    try {
      await this.#cluster.ask("PATCH", path, { body, type: "application/merge-patch+json" });
    } catch (error) {
      if (!(error instanceof ClusterRefusal)) throw error;
      this.#settings.warn?.(
        `the claim ${name} has ${gb} GB and cannot get the ${sizeGb} of its volume: ${error.message}`,
      );
    }
  }

  /** Removes a volume's claim, and by that what it holds; none: it was never used here. */
  remove = (volumeId: string): Promise<void> =>
    unless(404, this.#cluster.ask("DELETE", `${this.#path}/${claimOf(volumeId)}`));

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

/** Waits for a call; this status is as good. */
async function unless(status: number, asked: Promise<unknown>): Promise<void> {
  await asked.catch((error) => {
    if (statusOf(error) !== status) throw error;
  });
}
