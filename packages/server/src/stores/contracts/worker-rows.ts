import { beforeEach, describe, expect, it } from "vitest";
import type { WorkerPatch } from "../../store.js";
import type { Scene, Setting } from "./scene.js";

/** Who is given a place, and who is not. */
export function workerRows(setting: () => Setting): void {
  describe("what is wanted of a worker", () => {
    let scene: Scene;
    let no: number;
    beforeEach(() => {
      ({ scene, first: no } = setting());
    });
    const wantedNow = async () => (await scene.stores.workers.all(scene.now)).find((each) => each.no === no)?.wanted;

    it("changes from the states that it was decided from, and from no other", async () => {
      const { workers } = scene.stores;
      expect(await workers.save(no, { wanted: "paused" }, ["running"])).toBe(true);
      expect(await workers.save(no, { wanted: "closed" }, ["running"])).toBe(false);
      expect(await wantedNow()).toBe("paused");
      const isOneOf = await Promise.all([
        workers.save(no, { wanted: "running" }, ["paused"]),
        workers.save(no, { wanted: "stopped" }, ["paused"]),
      ]);
      expect(isOneOf.filter(Boolean)).toHaveLength(1);
    });

    it("changes no more where it has ended, or never was", async () => {
      await scene.stores.workers.save(no, { endedAt: scene.now + 1 });
      expect(await scene.stores.workers.save(no, { wanted: "closed" }, ["running"])).toBe(false);
      expect(await scene.stores.workers.save(987_654, { wanted: "closed" }, ["running"])).toBe(false);
      expect(await wantedNow()).toBe("running");
    });
  });

  describe("a worker that waits for a place", () => {
    let scene: Scene;
    let no: number;
    beforeEach(() => {
      ({ scene, first: no } = setting());
    });
    const place = async (cpus: number) => {
      const hostNo = await scene.stores.hosts.ensure("host", scene.now);
      const resources = { gpus: [{ id: "GPU-1", name: "NVIDIA L4" }], cpus, memoryMib: 1_024 };
      return scene.stores.workers.place(no, { hostNo, resources, placedAt: scene.now });
    };
    const row = async () => (await scene.stores.workers.all(scene.now)).find((each) => each.no === no);

    it("is given it once", async () => {
      const given = await Promise.all([place(1), place(2)]);
      expect([...given].sort()).toEqual([false, true]); // either may come first
      const cpus = given[0] ? 1 : 2;
      expect(await row()).toMatchObject({
        resources: { gpus: [{ id: "GPU-1", name: "NVIDIA L4" }], cpus, memoryMib: 1_024 },
        placedAt: scene.now,
      });
    });

    it.each<[string, WorkerPatch]>([
      ["closed", { wanted: "closed" }],
      ["stopped", { wanted: "stopped" }],
      ["gone", { endedAt: 1_790_000_000_001 }],
    ])("is given none where it is %s by now", async (_, patch) => {
      await scene.stores.workers.save(no, patch);
      expect(await place(1)).toBe(false);
      expect((await row())?.placedAt).toBeUndefined();
    });
  });
}
