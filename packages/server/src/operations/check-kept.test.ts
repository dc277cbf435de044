import { afterEach, beforeEach, expect, it } from "vitest";
import { weightOf } from "../domain/endpoints/weight.js";
import { limits } from "../limits/index.js";
import { plainTemplate } from "../testing/facts-fixture.js";
import { refused, Scene } from "../testing/scene-fixture.js";
import { createEndpoint, deleteEndpoint, updateEndpoint } from "./endpoints/save-endpoint.js";
import { createTemplate, updateTemplate } from "./templates/save-template.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const env = Object.fromEntries(Array.from({ length: 16_000 }, (_, n) => [`V${n}`, "value"]));

it("The memory of one owner's endpoints and templates is bounded, and existing ones may still be made smaller", async () => {
  const { registry } = scene.parts;
  const settings = { ...plainTemplate, env };
  const { ownerNo } = scene.admin;
  const endpoint = await scene.endpoint({ name: "before" });
  const made = [];
  // Written without the operation: as many as fit.
  const fitting = Math.floor((limits.settingsBytesMax - 100_000) / weightOf({ ...settings }));
  for (let n = 0; n < fitting; n++)
    made.push(await registry.createTemplate({ id: `kept${n}`, ownerNo, settings: { ...settings, name: `kept ${n}` } }));
  const words = /128 MiB of memory: delete some/;
  const input = { name: "one more", imageName: scene.directory, env };
  await refused(createTemplate(scene.parts, scene.admin, input), "INVALID_INPUT", words);
  const { templateId } = endpoint.settings;
  await refused(createEndpoint(scene.parts, scene.admin, { name: "e", templateId, env }), "INVALID_INPUT", words);
  await refused(updateEndpoint(scene.parts, scene.admin, endpoint, { env }), "INVALID_INPUT", words);
  const small = { name: "small", imageName: scene.directory };
  expect((await createTemplate(scene.parts, scene.admin, small)).settings.name).toBe("small");

  await updateTemplate(scene.parts, scene.admin, made[0]!, { imageName: scene.directory, env: {} });
  expect((await createTemplate(scene.parts, scene.admin, input)).settings.name).toBe("one more");
});

it("A deleted endpoint is kept in memory without its large fields", async () => {
  const endpoint = await scene.endpoint({ name: "gone", env, workersMax: 0 });
  await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
  const kept = scene.now(endpoint).settings;
  expect([kept.name, kept.env, kept.workersMax]).toEqual(["gone", {}, 0]);
  expect(weightOf(kept)).toBeLessThan(10_000);
  scene = await scene.restart();
  const row = (await scene.stores.endpoints.all()).find(({ no }) => no === endpoint.no);
  expect(row?.settings.env ?? {}).toEqual({});
});
