import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { Scene } from "../testing/scene-fixture.js";
import { clearDeletedLoop } from "./clear-deleted.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

it("The jobs of an endpoint whose deletion stopped halfway are ended, here or by another server, and then nothing is read", async () => {
  const endpoint = await scene.endpoint();
  const worker = await scene.worker(endpoint);
  const running = await scene.running(endpoint, worker);
  const waiting = await scene.submit(endpoint);
  await scene.parts.registry.removeEndpoint(endpoint, scene.clock.now()); // the server ended before it cancelled them
  const tallies = Object.create(scene.parts.tallies) as typeof scene.parts.tallies;
  let reads = 0;
  tallies.tally = (no) => {
    reads++;
    return scene.parts.tallies.tally(no);
  };
  scene.run(clearDeletedLoop({ ...scene.parts, tallies }));
  for (const id of [running, waiting]) await scene.until(async () => (await scene.state(endpoint, id)) === "CANCELLED");
  await scene.advance(2 * limits.netMs);
  await scene.until(() => reads === 2);
  await scene.advance(10 * limits.netMs);
  expect(reads).toBe(2);
});
