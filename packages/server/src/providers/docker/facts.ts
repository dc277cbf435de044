import { realTime, type Timer } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { Engine } from "./engine.js";
import { engineVolume, networkVolume } from "./engine-volume.js";
import { answered, statusOf } from "./failures.js";
import { complaintNow } from "./image.js";

/** What operations may ask of an engine. Answers are quick: an engine that is away knows nothing. */
export function engineFacts(engine: Engine) {
  return {
    imageComplaint(image: string, hasCommand: boolean): Promise<string | undefined> {
      let timer: Timer | undefined;
      const late = new Promise<undefined>((resolve) => {
        timer = realTime.after(limits.imageCheckMs, () => resolve(undefined));
      });
      const known = complaintNow(engine, { image, hasCommand }).catch(() => undefined);
      return Promise.race([known, late]).finally(() => realTime.cancel(timer));
    },
    /** Whether an engine answers now. */
    isThere: (): Promise<boolean> =>
      answered(engine.docker.ping(), engine.host, limits.enginePingMs).then(
        () => true,
        () => false,
      ),
    volumes: engineVolumes(engine),
  };
}

/** The engine's own volumes that stand for network volumes. */
const engineVolumes = (engine: Engine) => ({
  unbounded: "Containers use the engine's own volume, whose size cannot be limited.",
  nameOf: (volumeId: string) => `the container engine's volume ${engineVolume(volumeId)}`,
  async remove(volumeId: string): Promise<void> {
    await answered(engine.docker.getVolume(engineVolume(volumeId)).remove(), engine.host).catch((error) => {
      if (statusOf(error) !== 404) throw error; // no container has ever used it
    });
  },
  /** Slow: the engine measures everything it holds, images too. */
  async measure(): Promise<ReadonlyMap<string, number>> {
    const { Volumes } = (await answered(engine.docker.df(), engine.host, limits.volumeCountMs)) as DiskUse;
    const sizes = new Map<string, number>();
    for (const { Name, UsageData } of Volumes ?? []) {
      const id = networkVolume(Name);
      if (id !== undefined && UsageData && UsageData.Size >= 0) sizes.set(id, UsageData.Size);
    }
    return sizes;
  },
});

/** Part of the reply to `GET /system/df`; a size of -1 is unknown. */
interface DiskUse {
  readonly Volumes: readonly { readonly Name: string; readonly UsageData?: { readonly Size: number } | null }[] | null;
}
