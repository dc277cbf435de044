import { afterEach, expect, it } from "vitest";
import { Scene } from "../../testing/scene-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { placeThrottled } from "./place-worker.js";

let scene: Scene;
afterEach(() => scene.close());

it("Workers of many endpoints are given places over many turns of the event loop", async () => {
  scene = await Scene.open();
  const impossible = { computeType: "CPU", vcpuCount: 512, workersMin: 1, workersMax: 1 } as const;
  const endpoints = [
    await scene.scaled(impossible),
    await scene.endpoint(impossible),
    await scene.endpoint(impossible),
  ];
  await scene.advance(50);
  const { value, waits } = await withTurns(() => placeThrottled(scene.parts));
  expect(value.left).toEqual(new Set(endpoints.map(({ no }) => no)));
  expect(waits).toBeGreaterThanOrEqual(3);
});
