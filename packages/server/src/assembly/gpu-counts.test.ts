import { afterEach, expect, it } from "vitest";
import type { HostFacts } from "../domain/hosts/host.js";
import { l4, plainHost } from "../testing/facts-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { gpuCounts } from "./gpu-counts.js";

let scene: Scene;
afterEach(() => scene.close());

it("A GPU is held while a worker has it, and a GPU that is gone is neither held nor free", async () => {
  let facts: HostFacts = { ...plainHost, gpusEnforced: true, gpus: [l4(1), l4(2)] };
  scene = await Scene.open({ here: { facts: () => facts } });
  await scene.runAll();
  expect(gpuCounts(scene.parts)).toEqual({ held: 0, free: 2 });
  await scene.endpoint({ workersMin: 1 });
  await scene.advance(50);
  expect(gpuCounts(scene.parts)).toEqual({ held: 1, free: 1 });
  const held = scene.parts.registry.liveWorkers()[0]?.row.resources?.gpus[0]?.id;
  facts = { ...facts, gpus: facts.gpus.filter(({ id }) => id !== held) };
  expect(gpuCounts(scene.parts)).toEqual({ held: 0, free: 1 });
});
