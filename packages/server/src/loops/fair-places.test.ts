import { afterEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../memory/registry.js";
import { updateEndpoint } from "../operations/endpoints/save-endpoint.js";
import { l4, plainHost } from "../testing/facts-fixture.js";
import { Scene } from "../testing/scene-fixture.js";

let scene: Scene;
afterEach(() => scene.close());

describe("A GPU that becomes free", () => {
  it("goes to the users that wait for one in turn, by their weights", async () => {
    const facts = { ...plainHost, gpusEnforced: true, gpus: [l4(1), l4(2), l4(3), l4(4)] };
    scene = await Scene.open({ here: { facts: () => facts } });
    await scene.runAll();
    const first = await scene.endpoint({ workersMin: 4, workersMax: 8 });
    await scene.advance(50);
    const { caller } = await scene.stranger();
    const template = await scene.template({ imageName: "alpine:3" }, caller);
    const theirs = await scene.endpoint({ workersMin: 4, workersMax: 4, templateId: template.id }, caller);
    await updateEndpoint(scene.parts, scene.admin, scene.now(first), { workersMin: 8 });
    await scene.advance(50);
    const placed = (endpoint: Endpoint) => scene.workersOf(endpoint).filter(({ row }) => row.resources).length;
    expect([placed(first), placed(theirs)]).toEqual([4, 0]);
    const free = async () => {
      const held = scene.workersOf(first).find(({ row }) => row.resources) as LiveWorker;
      scene.provider.end(held.row.id, { code: 0 });
      await scene.advance(10_000);
    };
    await free();
    await free();
    expect([placed(first), placed(theirs)]).toEqual([2, 2]);
    await free();
    expect([placed(first), placed(theirs)]).toEqual([2, 2]); // the first user holds less then
    const user = scene.parts.registry.user(caller.ownerNo)!;
    await scene.parts.registry.saveUser({ ...user, terms: { weight: 3 } });
    await free();
    expect([placed(first), placed(theirs)]).toEqual([1, 3]);
  });

  it.each([
    [1, "ABABABAB"],
    [3, "ABAAABAAAB"],
  ])("goes round by user where there is one place, with the weight %i", async (weight, order) => {
    const facts = { ...plainHost, gpusEnforced: true, gpus: [l4(1)] };
    scene = await Scene.open({ here: { facts: () => facts } });
    await scene.runAll();
    const admin = scene.parts.registry.user(scene.admin.ownerNo)!;
    await scene.parts.registry.saveUser({ ...admin, terms: { weight } });
    const { caller } = await scene.stranger();
    const own: Endpoint[] = [];
    const theirs: Endpoint[] = [];
    const settings = { workersMin: 1, workersMax: 1 };
    for (let n = 0; n < order.length; n++) own.push(await scene.endpoint(settings));
    for (let n = 0; n < order.length; n++) {
      const { id } = await scene.template({ imageName: "alpine:3" }, caller);
      theirs.push(await scene.endpoint({ ...settings, templateId: id }, caller));
    }
    await scene.advance(50);
    let had = "";
    while (had.length < order.length) {
      const holder = [...own, ...theirs].find((each) => scene.workersOf(each).some(({ row }) => row.resources))!;
      had += own.includes(holder) ? "A" : "B";
      const worker = scene.workersOf(holder).find(({ row }) => row.resources) as LiveWorker;
      await updateEndpoint(scene.parts, own.includes(holder) ? scene.admin : caller, scene.now(holder), {
        workersMin: 0,
        workersMax: 0,
      });
      scene.provider.end(worker.row.id, { code: 0 });
      await scene.advance(1_000);
    }
    expect(had).toBe(order);
  });
});
