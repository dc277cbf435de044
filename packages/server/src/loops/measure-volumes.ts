import { existsSync } from "node:fs";
import { join } from "node:path";
import { PlainSignal, type Signal } from "../clock.js";
import { isPassed, type Volume, type VolumeUse } from "../domain/endpoints/volume.js";
import type { Emit } from "../events.js";
import { limits } from "../limits/index.js";
import type { Needs } from "../operations/needs.js";
import { boundVolume } from "../operations/volumes/keep-volume.js";
import { measureFolder } from "../operations/volumes/measure-volume.js";
import type { Loop } from "./loop.js";

type Measuring = Needs<"registry" | "here" | "emit" | "clock">;

const noBytes: ReadonlyMap<string, number> = new Map();

/** Notes what volumes hold on this host: at the start, while workers use them, and once more when one has ended. */
export class VolumeMeasuring {
  readonly #needs: Measuring;
  readonly #count: typeof measureFolder;
  /** Ids of endpoints whose workers may have written since their volumes were measured. */
  readonly #stirred = new Set<string>();
  #wake = () => {};
  readonly #passed = new Set<string>();
  /** Ids of volumes whose disk does not answer. Each further attempt would block one more of a few threads. */
  readonly #hung = new Set<string>();

  constructor(needs: Measuring, count = measureFolder) {
    this.#needs = needs;
    this.#count = count;
  }

  /** Must be called with every event. */
  readonly hear: Emit = (event) => {
    if (event.type !== "worker.started" && event.type !== "worker.ended") return;
    this.#stirred.add(event.endpointId);
    this.#wake();
  };

  loop(): Loop {
    return {
      name: "measure-volumes",
      topics: [],
      gapMs: limits.volumeGapMs,
      listen: (wake) => {
        this.#wake = wake;
        return () => {
          this.#wake = () => {};
        };
      },
      tick: async (now, signal) => {
        const due = this.#due();
        const held = due.length > 0 ? await this.#held() : noBytes;
        for (const volume of due) await this.#measure(volume, held, now, signal);
        return this.#stirred.size > 0 ? now + limits.volumeMeasureMs : undefined;
      },
    };
  }

  /** The volumes that were never measured, or may have changed. */
  #due(): Volume[] {
    const { registry, here } = this.#needs;
    const stirred = new Set(this.#stirred);
    this.#stirred.clear();
    for (const { row } of registry.liveWorkers()) {
      const endpoint = row.hostNo === here.hostNo ? registry.endpointByNo(row.endpointNo) : undefined;
      if (!endpoint) continue;
      stirred.add(endpoint.id);
      this.#stirred.add(endpoint.id);
    }
    const used = new Set(
      registry.endpoints().flatMap(({ id, settings }) => (stirred.has(id) ? settings.networkVolumeIds : [])),
    );
    for (const id of here.volumes.use.keys()) if (!registry.volume(id)) this.#forget(id);
    return registry.volumes().filter(({ id }) => !this.#hung.has(id) && (used.has(id) || !here.volumes.use.has(id)));
  }

  #forget(id: string): void {
    this.#needs.here.volumes.use.delete(id);
    this.#passed.delete(id);
  }

  /** What the volumes hold that a provider keeps in their place; undefined if it does not tell. */
  async #held(): Promise<ReadonlyMap<string, number> | undefined> {
    const { held } = this.#needs.here.volumes;
    return held ? held.measure().catch(() => undefined) : noBytes;
  }

  async #measure(
    volume: Volume,
    held: ReadonlyMap<string, number> | undefined,
    now: number,
    signal: Signal,
  ): Promise<void> {
    const { registry, here } = this.#needs;
    // its size may have been raised on another host
    if (existsSync(join(here.volumes.dir, volume.id))) await boundVolume(this.#needs, volume);
    const found = await this.#counted(volume.id, signal);
    if (signal.aborted || !registry.volume(volume.id)) return;
    const bytes = found.bytes + (held?.get(volume.id) ?? 0);
    const use: VolumeUse = { bytes, isWhole: found.isWhole && held !== undefined, at: now };
    here.volumes.use.set(volume.id, use);
    this.#tell(volume, use);
  }

  /** Counts with a time limit: a slow count is reported as far as it got, and a count that hangs is left behind. */
  async #counted(id: string, signal: Signal): Promise<Omit<VolumeUse, "at">> {
    const { clock, here } = this.#needs;
    const [late, over] = [new PlainSignal(), new PlainSignal()];
    const stop = () => late.abort();
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    // a volume made on another host has no directory here until a worker needs it
    const unread = (error: NodeJS.ErrnoException) => ({ bytes: 0, isWhole: error.code === "ENOENT" });
    const count = this.#count(join(here.volumes.dir, id), late).catch(unread);
    this.#hung.add(id);
    void count.then(() => this.#hung.delete(id));
    const left = clock
      .sleep(limits.volumeCountMs, over)
      .then(stop)
      .then(() => clock.sleep(limits.volumeGapMs, over))
      .then(() => ({ bytes: 0, isWhole: false }));
    return Promise.race([count, left]).finally(() => {
      over.abort();
      signal.removeEventListener("abort", stop);
    });
  }

  /** Emits one event each time the size is passed. */
  #tell(volume: Volume, use: VolumeUse): void {
    if (!isPassed(volume, use)) this.#passed.delete(volume.id);
    else if (!this.#passed.has(volume.id)) {
      this.#passed.add(volume.id);
      this.#needs.emit({ type: "volume.passed", volumeId: volume.id, usedBytes: use.bytes, sizeGb: volume.size });
    }
  }
}
