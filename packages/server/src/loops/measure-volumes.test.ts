import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { Volume } from "../domain/endpoints/volume.js";
import { limits } from "../limits/index.js";
import type { LiveWorker } from "../memory/registry.js";
import { showVolume } from "../operations/show-resources.js";
import type { measureFolder } from "../operations/volumes/measure-volume.js";
import { createVolume, deleteVolume } from "../operations/volumes/save-volume.js";
import { Scene } from "../testing/scene-fixture.js";
import { VolumeMeasuring } from "./measure-volumes.js";

const strict = { provider: "strict", ref: {} };

let scene: Scene;
let measuring: VolumeMeasuring;
let volume: Volume;
beforeEach(async () => {
  scene = await Scene.open();
  measuring = new VolumeMeasuring(scene.parts);
  volume = await createVolume(scene.parts, scene.admin, { name: "v", size: 1, dataCenterId: "here" });
});
afterEach(() => scene.close());

const write = (mib: number) =>
  writeFileSync(join(scene.parts.here.volumes.dir, volume.id, "weights"), Buffer.alloc(mib * 2 ** 20, 1));
const shown = () => showVolume(scene.parts, scene.parts.registry.volume(volume.id) as Volume) as { usedBytes?: number };
const usedMib = () => Math.floor((shown().usedBytes ?? -1) / 2 ** 20);
const passed = () => scene.events.filter(({ type }) => type === "volume.passed");
/** Lets time pass; reading the disk does not advance the clock. */
const waited = async (ms: number, isSo: () => boolean) => {
  await scene.advance(ms);
  await scene.until(isSo);
};

/** An endpoint and worker that use the volume. */
async function user(): Promise<{ endpoint: Endpoint; worker: LiveWorker }> {
  const endpoint = await scene.endpoint({ networkVolumeId: volume.id });
  const worker = await scene.worker(endpoint);
  measuring.hear({ type: "worker.started", endpointId: endpoint.id, workerId: worker.row.id, ...strict });
  return { endpoint, worker };
}
async function end({ endpoint, worker }: { endpoint: Endpoint; worker: LiveWorker }) {
  const exit = { code: 0 };
  await scene.parts.registry.changeWorker(worker, { by: "end", endedAt: scene.clock.now(), exit });
  measuring.hear({ type: "worker.ended", endpointId: endpoint.id, workerId: worker.row.id, exit, why: "" });
}

describe("A volume's content", () => {
  it("is shown once it was measured, with the time of the measurement", async () => {
    expect(shown()).toEqual({ id: volume.id, name: "v", size: 1, dataCenterId: "here", sizeEnforced: false });
    write(1);
    const at = scene.clock.now();
    scene.run(measuring.loop());
    await scene.until(() => usedMib() === 1);
    expect(shown()).toMatchObject({ usedAt: new Date(at).toISOString(), sizePassed: false });
  });

  it("is measured again while a worker uses it, and once more after its end", async () => {
    scene.run(measuring.loop());
    await scene.until(() => usedMib() === 0);
    const mine = await user();
    write(2);
    await waited(limits.volumeGapMs, () => usedMib() === 2);
    write(3);
    await waited(limits.volumeMeasureMs, () => usedMib() === 3);
    write(4);
    await end(mine);
    await waited(limits.volumeGapMs, () => usedMib() === 4);
  });

  it("is not measured while no worker uses it", async () => {
    scene.run(measuring.loop());
    await scene.until(() => usedMib() === 0);
    await scene.advance(limits.volumeGapMs);
    const { wakes } = scene.clock;
    await scene.advance(100 * limits.volumeMeasureMs);
    expect(scene.clock.wakes).toBe(wakes);
  });

  it("is zero if another host has made the volume", async () => {
    rmSync(join(scene.parts.here.volumes.dir, volume.id), { recursive: true });
    scene.run(measuring.loop());
    await scene.until(() => usedMib() === 0);
  });

  it("is never shown as zero if it could not be read", async () => {
    const unreadable = async () => Promise.reject(Object.assign(new Error("no"), { code: "EIO" }));
    scene.run(new VolumeMeasuring(scene.parts, unreadable).loop());
    await scene.until(() => usedMib() === 0);
    expect(shown()).toMatchObject({ usedBytes: 0, usedAtLeast: true });
  });

  it("includes its directory and, if containers use it, the engine's own volume", async () => {
    let engines = async () => new Map([[volume.id, 3 * 2 ** 20]]);
    const held = {
      nameOf: String,
      unbounded: "The provider keeps them.",
      remove: async () => {},
      measure: () => engines(),
    };
    const here = { ...scene.parts.here, volumes: { ...scene.parts.here.volumes, held } };
    write(1);
    scene.run(new VolumeMeasuring({ ...scene.parts, here }).loop());
    await scene.until(() => usedMib() === 4);
    expect(shown()).not.toHaveProperty("usedAtLeast");
    engines = async () => Promise.reject(new Error("no container engine answers"));
    await user();
    scene.run(new VolumeMeasuring({ ...scene.parts, here }).loop());
    await scene.until(() => usedMib() === 1);
    expect(shown()).toMatchObject({ usedAtLeast: true });
  });

  it("is forgotten with the volume", async () => {
    scene.run(measuring.loop());
    await scene.until(() => usedMib() === 0);
    await deleteVolume(scene.parts, scene.admin, volume.id);
    measuring.hear({ type: "worker.started", endpointId: "any", workerId: "any", ...strict });
    await waited(limits.volumeGapMs, () => scene.parts.here.volumes.use.size === 0);
  });
});

describe("A volume whose disk is slow", () => {
  const whole = { bytes: 7, isWhole: true };
  let second: Volume;
  let uses: Map<string, { bytes: number; isWhole: boolean }>;
  beforeEach(async () => {
    second = await createVolume(scene.parts, scene.admin, { name: "w", size: 1, dataCenterId: "here" });
    uses = scene.parts.here.volumes.use;
  });
  const isFirst = (path: string) => path.endsWith(volume.id);

  it("is reported as a minimum, as far as it was measured, and does not delay the others", async () => {
    const count: typeof measureFolder = async (path, signal) => {
      if (!isFirst(path)) return whole;
      await new Promise<void>((resolve) => signal.addEventListener("abort", resolve));
      return { bytes: 5, isWhole: false };
    };
    scene.run(new VolumeMeasuring(scene.parts, count).loop());
    await scene.settle();
    await waited(limits.volumeCountMs, () => uses.has(second.id));
    expect(uses.get(volume.id)).toMatchObject({ bytes: 5, isWhole: false });
    expect(uses.get(second.id)).toMatchObject(whole);
  });

  it("that never answers does not delay the others, and is not measured again meanwhile", async () => {
    let asked = 0;
    const measures = new VolumeMeasuring(scene.parts, async (path) => {
      if (!isFirst(path)) return whole;
      asked++;
      return new Promise(() => {});
    });
    await user();
    scene.run(measures.loop());
    await scene.settle();
    await waited(limits.volumeCountMs, () => asked === 1);
    await waited(limits.volumeGapMs, () => uses.has(second.id));
    expect(uses.get(volume.id)).toMatchObject({ bytes: 0, isWhole: false });
    measures.hear({ type: "worker.started", endpointId: "any", workerId: "any", ...strict });
    await scene.advance(limits.volumeMeasureMs);
    await scene.settle();
    expect(asked).toBe(1);
  });
});

describe("A volume that holds more than its size", () => {
  it("is reported once each time that happens, and is shown as over its size", async () => {
    // A size in GB is too large for a test's disk.
    let bytes = 2 ** 30;
    const tight = new VolumeMeasuring(scene.parts, async () => ({ bytes, isWhole: true }));
    await user();
    scene.run(tight.loop());
    tight.hear({ type: "worker.started", endpointId: "any", workerId: "any", ...strict });
    const holds = async (next: number) => {
      bytes = next;
      await scene.advance(limits.volumeMeasureMs);
    };
    await scene.settle();
    expect([passed(), shown()]).toEqual([[], expect.objectContaining({ sizePassed: false })]);
    await holds(2 ** 30 + 1);
    await holds(2 ** 30 + 2);
    expect(passed()).toEqual([{ type: "volume.passed", volumeId: volume.id, usedBytes: 2 ** 30 + 1, sizeGb: 1 }]);
    expect(shown()).toMatchObject({ sizePassed: true, usedBytes: 2 ** 30 + 2 });
    await holds(5);
    await holds(2 ** 31);
    expect(passed()).toHaveLength(2);
  });
});
