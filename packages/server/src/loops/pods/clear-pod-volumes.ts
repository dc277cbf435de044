import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { podOfVolume } from "../../domain/pods/pod.js";
import { limits } from "../../limits/index.js";
import type { ClusterVolumes, Needs } from "../../operations/needs.js";
import type { EndpointStore } from "../../store/index.js";
import type { Loop } from "../loop.js";

type Clearing = Needs<"registry" | "here" | "emit">;

/** Where pods' volumes are kept. */
interface Shelf {
  readonly list: () => Promise<readonly string[]>;
  readonly remove: (volumeId: string) => Promise<void>;
}

/**
 * Removes the volumes of deleted pods from this host, once their containers have ended. Looks for their directories, so
 * that none is left behind by a host that was away when its pod was deleted.
 */
export function clearPodVolumesLoop(needs: Clearing, store: Pick<EndpointStore, "existing">): Loop {
  const { dir, held, quota, bounds } = needs.here.volumes;
  return clearingLoop("clear-pod-volumes", needs, store, {
    list: () => namesIn(dir),
    async remove(volumeId) {
      bounds.delete(volumeId);
      await held?.remove(volumeId); // first: the directory is what the next look finds it by
      await quota.remove(join(dir, volumeId));
    },
  });
}

/** The same for the volumes that a cluster keeps: one of the servers does it. */
export const clearClusterVolumesLoop = (
  name: string,
  needs: Clearing,
  store: Pick<EndpointStore, "existing">,
  volumes: ClusterVolumes,
): Loop => clearingLoop(name, needs, store, volumes);

function clearingLoop(name: string, needs: Clearing, store: Pick<EndpointStore, "existing">, shelf: Shelf): Loop {
  const failed = new Set<string>();
  return {
    name,
    topics: ["workers"],
    gapMs: limits.podVolumesGapMs,
    async tick(now, signal) {
      const here = podVolumes(await shelf.list(), failed);
      const orphans = await orphaned(needs, store, here);
      for (const volumeId of orphans) {
        if (signal.aborted) break;
        try {
          await shelf.remove(volumeId);
        } catch (error) {
          failed.add(volumeId);
          const message = `the volume ${volumeId} of a deleted pod could not be removed; remove it by hand`;
          needs.emit({ type: "server.warning", message, error });
        }
      }
      if (orphans.length > 0) return now;
      // a pod that is stopped, or whose worker is ending, is deleted without a word to this host
      return here.length > 0 ? now + limits.podVolumesGapMs : undefined;
    },
  };
}

interface PodVolume {
  readonly volumeId: string;
  readonly podId: string;
}

const podVolumes = (names: readonly string[], failed: ReadonlySet<string>): PodVolume[] =>
  names.flatMap((volumeId) => {
    const podId = failed.has(volumeId) ? undefined : podOfVolume(volumeId);
    return podId === undefined ? [] : [{ volumeId, podId }];
  });

async function namesIn(dir: string): Promise<string[]> {
  const names: string[] = [];
  const opened = await opendir(dir).catch(() => undefined);
  if (opened) for await (const { name } of opened) names.push(name);
  return names;
}

/** Volumes whose pods are deleted and have no worker any more. */
async function orphaned(
  { registry }: Clearing,
  store: Pick<EndpointStore, "existing">,
  volumes: readonly PodVolume[],
): Promise<string[]> {
  const found = volumes
    .filter(({ podId }) => !registry.pod(podId) && !isInUse(registry, podId))
    .slice(0, limits.podVolumesAtOnce);
  if (found.length === 0) return [];
  // memory may not know yet what another server has just made
  const existing = new Set(await store.existing(found.map(({ podId }) => podId)));
  return found.filter(({ podId }) => !existing.has(podId)).map(({ volumeId }) => volumeId);
}

function isInUse(registry: Clearing["registry"], podId: string): boolean {
  return registry.endpoints().some(({ id, no }) => id === podId && registry.workersOf(no).length > 0);
}
