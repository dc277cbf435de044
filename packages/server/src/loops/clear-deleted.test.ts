import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { cancelWaiting } from "../operations/jobs/change-job.js";
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

it("Many purges write one batch at a time, and owners take turns", async () => {
  const endpoints = [await scene.endpoint(), await scene.endpoint(), await scene.endpoint()];
  for (const endpoint of endpoints) for (let n = 0; n < 3; n++) await scene.submit(endpoint);
  const { cancelWaiting: cancel } = scene.parts.jobs;
  let atOnce = 0;
  let most = 0;
  const jobs = Object.create(scene.parts.jobs) as typeof scene.parts.jobs;
  jobs.cancelWaiting = async (purge) => {
    most = Math.max(most, ++atOnce);
    const cancelled = await cancel(purge);
    atOnce--;
    return cancelled;
  };
  const purges = endpoints.flatMap(({ no }) =>
    [1, 2, 3].map(() => cancelWaiting({ ...scene.parts, jobs }, no, "purged")),
  );
  expect((await Promise.all(purges)).reduce((sum, count) => sum + count, 0)).toBe(9);
  expect(most).toBe(1);
});
