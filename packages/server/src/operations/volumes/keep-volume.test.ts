import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Volume } from "../../domain/endpoints/volume.js";
import type { Quota } from "../../host/quota.js";
import { Scene } from "../../testing/scene-fixture.js";
import { showVolume } from "../show-resources.js";
import { boundVolume, keepVolume } from "./keep-volume.js";
import { createVolume, deleteVolume, updateVolume } from "./save-volume.js";

const gib = 2 ** 30;

/** A file system that enforces quotas of directories, until it is told to refuse. */
class StrictQuota implements Quota {
  readonly by = "quotas of a test";
  readonly bounds = new Map<string, number>();
  refusal: string | undefined;
  calls = 0;

  async make(path: string): Promise<void> {
    mkdirSync(path, { recursive: true });
  }

  async bound(path: string, bytes: number): Promise<string | undefined> {
    this.calls++;
    if (!existsSync(path)) throw new Error(`there is no ${path}`);
    if (this.refusal !== undefined) return this.refusal;
    this.bounds.set(path, bytes);
    return undefined;
  }

  async remove(path: string): Promise<void> {
    this.bounds.delete(path);
    rmSync(path, { recursive: true, force: true });
  }
}

let scene: Scene;
let quota: StrictQuota;
beforeEach(async () => {
  quota = new StrictQuota();
  scene = await Scene.open({ volumes: { quota } });
});
afterEach(() => scene.close());

const create = (size = 10) => createVolume(scene.parts, scene.admin, { name: "models", size, dataCenterId: "here" });
const pathOf = ({ id }: Volume) => join(scene.parts.here.volumes.dir, id);
const isEnforced = (volume: Volume) => showVolume(scene.parts, volume).sizeEnforced;
const told = (type: string) => scene.events.filter((event) => event.type === type);

describe("A volume's size", () => {
  it("is the limit of its directory, when it is made and when it has grown", async () => {
    const volume = await create();
    expect([...quota.bounds]).toEqual([[pathOf(volume), 10 * gib]]);
    const grown = await updateVolume(scene.parts, scene.admin, volume, { size: 11 });
    expect([...quota.bounds]).toEqual([[pathOf(volume), 11 * gib]]);
    expect(isEnforced(grown)).toBe(true);
    expect(told("volume.bounded")).toMatchObject([{ sizeGb: 10 }, { sizeGb: 11, by: "quotas of a test" }]);
  });

  it("is set in the file system once, and again if that failed", async () => {
    const volume = await create();
    await keepVolume(scene.parts, volume);
    expect(quota.calls).toBe(1);
    quota.refusal = "Operation not permitted.";
    const grown = await updateVolume(scene.parts, scene.admin, volume, { size: 11 });
    await boundVolume(scene.parts, grown);
    expect(quota.calls).toBe(3);
    expect(isEnforced(grown)).toBe(false);
    expect(told("volume.unbounded")).toMatchObject([
      { sizeGb: 11, why: "Operation not permitted.", isExpected: false },
    ]);
    quota.refusal = undefined;
    await boundVolume(scene.parts, grown);
    expect(isEnforced(grown)).toBe(true);
  });

  it("that cannot be set in the file system is reported, and blocks nothing", async () => {
    const volume = await create();
    rmSync(pathOf(volume), { recursive: true });
    await boundVolume(scene.parts, { ...volume, size: 12 });
    expect(isEnforced(volume)).toBe(false);
    expect(told("volume.unbounded")).toMatchObject([{ why: expect.stringContaining("there is no") }]);
  });

  it("does not count as enforced if containers use the engine's own volume", async () => {
    await scene.close();
    const held = {
      nameOf: String,
      unbounded: "The provider keeps them.",
      remove: async () => {},
      measure: async () => new Map(),
    };
    scene = await Scene.open({ volumes: { quota, held } });
    const volume = await create();
    expect([quota.bounds.get(pathOf(volume)), isEnforced(volume)]).toEqual([10 * gib, false]);
  });

  it("of 0 sets no limit", async () => {
    const volume = await create(0);
    expect(quota.bounds.get(pathOf(volume))).toBe(0);
    expect(showVolume(scene.parts, volume)).not.toHaveProperty("sizeEnforced");
  });

  it("is also set on a host that gets the volume only when a worker needs it", async () => {
    const volume = await create();
    rmSync(pathOf(volume), { recursive: true });
    scene.parts.here.volumes.bounds.clear();
    quota.bounds.clear();
    const endpoint = await scene.endpoint({ networkVolumeId: volume.id });
    scene.run(scene.loops.tend());
    const { registry, ids, clock, here, bell } = scene.parts;
    const { no: endpointNo, version } = scene.now(endpoint);
    const id = ids.resource();
    await registry.createWorker({ id, endpointNo, version, hostNo: here.hostNo, createdAt: clock.now() });
    bell.ring("workers");
    await scene.advance(5);
    await scene.until(() => scene.provider.launches.length === 1);
    expect([...quota.bounds]).toEqual([[pathOf(volume), 10 * gib]]);
  });

  it("is removed with the volume", async () => {
    const volume = await create();
    await deleteVolume(scene.parts, scene.admin, volume.id);
    expect([existsSync(pathOf(volume)), quota.bounds.size, scene.parts.here.volumes.bounds.size]).toEqual([
      false,
      0,
      0,
    ]);
  });
});
