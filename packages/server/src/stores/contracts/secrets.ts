import { expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import type { Setting } from "./scene.js";

/** Secrets of workers' environments. */
export function secrets(setting: () => Setting): void {
  it("secrets are kept by their owner and name, and values are read apart", async () => {
    const { stores } = setting().scene;
    const make = (ownerNo: number, name: string, n: number) =>
      stores.secrets.create({
        id: `secret0000000${n}`,
        ownerNo,
        name,
        description: "é",
        createdAt: 5,
        value: `sealed ${n}`,
      });
    const [b, a] = [await make(70, "b", 1), await make(70, "a", 2)];
    const other = await make(71, "a", 3);
    expect(await stores.secrets.of(70)).toEqual([a, b]);
    expect(a).toEqual({ no: a.no, id: "secret00000002", ownerNo: 70, name: "a", description: "é", createdAt: 5 });
    expect(await stores.secrets.values(70, ["a", "c"])).toEqual(new Map([["a", "sealed 2"]]));
    expect(await stores.secrets.values(70, [])).toEqual(new Map());
    await expect(make(70, "a", 4)).rejects.toThrow();
    await stores.secrets.change(a.no, { description: "new", value: "sealed anew" });
    await stores.secrets.change(b.no, { description: "also new" });
    expect(await stores.secrets.of(70)).toEqual([
      { ...a, description: "new" },
      { ...b, description: "also new" },
    ]);
    const values = await stores.secrets.values(70, ["a", "b"]);
    expect([...values].sort()).toEqual([
      ["a", "sealed anew"],
      ["b", "sealed 1"],
    ]);
    await stores.secrets.change(b.no, { description: "é" });
    await stores.secrets.remove(a.no);
    expect(await stores.secrets.of(70)).toEqual([b]);
    await stores.access.giveAll(71, 72);
    expect(await stores.secrets.of(72)).toEqual([{ ...other, ownerNo: 72 }]);
  });

  it("secrets of a worker's jobs are kept as long as the worker, and only the newest ones", async () => {
    const { scene, first } = setting();
    const { secrets, workers } = scene.stores;
    const second = await scene.worker("other000000000");
    expect(await secrets.newestOfJobs()).toBe(0);
    await secrets.noteOfJobs(first, ["sealed 1", "sealed 2"]);
    await secrets.noteOfJobs(second, ["sealed 3"]);
    await secrets.noteOfJobs(first, []);
    await secrets.noteOfJobs(first, ["sealed 4"]);
    const valuesOf = async (no: number, after = 0, limit = 10_000) =>
      (await secrets.ofJobs(no, after, limit)).map(({ value }) => value);
    expect(await valuesOf(first)).toEqual(["sealed 1", "sealed 2", "sealed 4"]);
    expect(await secrets.newestOfJobs()).toBe((await secrets.ofJobs(first, 0, 5)).at(-1)?.no);
    const [one] = await secrets.ofJobs(first, 0, 1);
    expect(await valuesOf(first, one!.no, 1)).toEqual(["sealed 2"]);
    const many = Array.from({ length: limits.heldJobsMax }, (_, n) => `many ${n}`);
    await secrets.noteOfJobs(first, many);
    expect(await valuesOf(first)).toEqual(many);
    expect(await valuesOf(second)).toEqual(["sealed 3"]);
    expect(await workers.change(first, { ...workerChanges.end, endedAt: scene.now })).toBe(true);
    await workers.forget(scene.now, 10);
    expect([await valuesOf(first), await valuesOf(second)]).toEqual([[], ["sealed 3"]]);
  });
}
