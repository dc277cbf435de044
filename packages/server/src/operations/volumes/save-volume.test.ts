import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { deleteEndpoint, updateEndpoint } from "../endpoints/save-endpoint.js";
import { createVolume, deleteVolume, ownVolume, updateVolume } from "./save-volume.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const create = () => createVolume(scene.parts, scene.admin, { name: "models", size: 10, dataCenterId: "here" });
const remove = (id: string, caller = scene.admin) => deleteVolume(scene.parts, caller, id);
const pathOf = (id: string) => join(scene.parts.here.volumes.dir, id);

describe("A volume", () => {
  it("is a directory that only its owner can access, and is deleted with all its files", async () => {
    const volume = await create();
    expect(volume).toMatchObject({ name: "models", size: 10, dataCenterId: "here" });
    expect(statSync(pathOf(volume.id)).mode & 0o777).toBe(0o700);
    writeFileSync(join(pathOf(volume.id), "model.bin"), "weights");
    await remove(volume.id);
    expect(existsSync(pathOf(volume.id))).toBe(false);
    expect(scene.parts.registry.volume(volume.id)).toBeUndefined();
  });

  it("is one of a bounded number for each user", async () => {
    const { registry, ids } = scene.parts;
    const plain = { ownerNo: scene.admin.ownerNo, name: "v", size: 1, dataCenterId: "here", sizedAt: 1, gbMs: 0 };
    for (let n = 0; n < limits.volumesPerUserMax; n++) await registry.createVolume({ ...plain, id: ids.resource() });
    await refused(create(), "IN_USE", /A user may have 2000 network volumes/);
    const { caller } = await scene.stranger();
    await createVolume(scene.parts, caller, { name: "models", size: 10, dataCenterId: "here" });
  });

  it("is deleted in turns with other work, however many endpoints there are", async () => {
    const { id } = await create();
    for (let n = 0; n < 20; n++) await scene.endpoint();
    expect((await withTurns(() => remove(id))).waits).toBeGreaterThanOrEqual(20);
  });

  it("is deleted together with the engine's volume for it; a volume that cannot be removed now is reported", async () => {
    const removed: string[] = [];
    let isAway = false;
    const removeEngines = async (id: string) => {
      removed.push(id);
      if (isAway) throw new Error("no container engine answers");
    };
    await scene.close();
    scene = await Scene.open({
      volumes: {
        held: {
          unbounded: "",
          nameOf: (id) => `millrace-${id}`,
          remove: removeEngines,
          measure: async () => new Map(),
        },
      },
    });
    const [first, second] = [await create(), await create()];
    await remove(first.id);
    expect(scene.warnings()).toEqual([]);
    isAway = true;
    await remove(second.id);
    expect(removed).toEqual([first.id, second.id]);
    expect(scene.warnings()).toMatchObject([{ message: expect.stringContaining(`millrace-${second.id}`) }]);
    expect(scene.parts.registry.volumes()).toEqual([]);
  });

  it("cannot be deleted while an earlier version that uses it serves", async () => {
    const volume = await create();
    await scene.runAll();
    const endpoint = await scene.endpoint({ workersMin: 1, workersMax: 2, networkVolumeId: volume.id });
    await scene.advance(50);
    await scene.take(scene.workersOf(endpoint)[0]!, { holdsNothing: true });
    for (let n = 0; n < 3; n++) scene.provider.failNext("start", "no such image");
    await updateEndpoint(scene.parts, scene.admin, endpoint, { networkVolumeIds: [] });
    await scene.advance(10_000);
    await refused(remove(volume.id), "IN_USE", new RegExp(`Version 1 of the endpoint '${endpoint.id}', which serves`));
  });

  it("cannot be deleted while a worker of an earlier version still uses it", async () => {
    const volume = await create();
    await scene.runAll();
    const endpoint = await scene.endpoint({ workersMin: 1, workersMax: 2, networkVolumeId: volume.id });
    await scene.advance(50);
    const [worker] = scene.workersOf(endpoint);
    const id = await scene.submit(endpoint);
    await scene.take(worker!);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { networkVolumeIds: [] });
    await scene.advance(50);
    const [next] = scene.workersOf(endpoint).filter(({ row }) => row.version === 2);
    void scene.take(next!);
    await scene.advance(50);
    await refused(remove(volume.id), "IN_USE", new RegExp(`The worker '${worker!.row.id}' .* still uses this volume`));
    await scene.done(worker!, id);
    await scene.advance(50);
    await refused(remove(volume.id), "IN_USE", /still uses this volume; try again when it has ended/); // it is stopping
    scene.provider.end(worker!.row.id, { code: 0 });
    await scene.advance(50);
    await remove(volume.id);
    expect(existsSync(pathOf(volume.id))).toBe(false);
  });

  it("may be renamed and grow, but not shrink", async () => {
    const volume = await create();
    const grown = await updateVolume(scene.parts, scene.admin, volume, { name: "more", size: 11 });
    expect(grown).toMatchObject({ name: "more", size: 11 });
    expect(await updateVolume(scene.parts, scene.admin, grown, { size: 11 })).toMatchObject({ name: "more", size: 11 });
    await refused(updateVolume(scene.parts, scene.admin, grown, { size: 10 }), "INVALID_INPUT", /only grow/);
  });

  it.each(["nothing", "", "../..", "x".repeat(500)])("with an invalid id ('%s') cannot be deleted: 400", async (id) => {
    await refused(remove(id), "INVALID_INPUT", /no network volume/);
  });

  it("of another user is refused like an unknown one: 400 to delete, 404 to see", async () => {
    const volume = await create();
    const { caller } = await scene.stranger();
    await refused(remove(volume.id, caller), "INVALID_INPUT", /no network volume/);
    await refused(() => ownVolume(scene.parts, caller, volume.id), "NOT_FOUND");
    expect(existsSync(pathOf(volume.id))).toBe(true);
  });

  it("cannot be deleted while an endpoint has it attached", async () => {
    const volume = await create();
    const endpoint = await scene.endpoint({ networkVolumeId: volume.id });
    await refused(remove(volume.id), "IN_USE", new RegExp(endpoint.id));
    await updateEndpoint(scene.parts, scene.admin, endpoint, { networkVolumeId: "" });
    const second = await scene.endpoint({ networkVolumeIds: [volume.id] });
    await refused(remove(volume.id), "IN_USE");
    await deleteEndpoint(scene.parts, scene.admin, second, { setToZero: true });
    await remove(volume.id);
  });
});
