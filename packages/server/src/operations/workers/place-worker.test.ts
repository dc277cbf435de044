import { afterEach, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { Scene } from "../../testing/scene-fixture.js";
import { placeThrottled } from "./place-worker.js";
import { stopWorker } from "./worker-life.js";

const plainLimits = { ...limits };
let scene: Scene;
afterEach(async () => {
  Object.assign(limits, plainLimits);
  await scene.close();
});

/** Endpoints with a worker each that no host has room for, and how often the event loop comes round while they are tried. */
async function impossible(count: number) {
  scene = await Scene.open();
  const settings = { computeType: "CPU", vcpuCount: 512, workersMin: 1, workersMax: 1 } as const;
  const endpoints = [await scene.scaled(settings)];
  while (endpoints.length < count) endpoints.push(await scene.endpoint(settings));
  await scene.advance(50);
  return endpoints;
}

it("Workers of many endpoints are tried over several rounds of the event loop", async () => {
  Object.assign(limits, { triedPerTurn: 2 });
  const endpoints = await impossible(6);
  let rounds = 0;
  let isOver = false;
  const count = () => {
    rounds++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const { left } = await placeThrottled(scene.parts);
  isOver = true;
  expect(left).toEqual(new Set(endpoints.map(({ no }) => no)));
  expect(rounds).toBeGreaterThanOrEqual(3);
});

it("A worker that is stopped meanwhile is not tried any more", async () => {
  Object.assign(limits, { triedPerTurn: 2 });
  const [, , third] = await impossible(3);
  const [worker] = scene.parts.registry.workersOf(third!.no);
  const why = worker!.row.why;
  setImmediate(() => void stopWorker(scene.parts, worker!, "no longer needed", 0));
  const { left } = await placeThrottled(scene.parts);
  expect(left.has(third!.no)).toBe(false);
  expect(why).not.toBeUndefined();
});
