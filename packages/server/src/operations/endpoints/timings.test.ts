import { afterEach, expect, it } from "vitest";
import { Scene } from "../../testing/scene-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";
import { showTimings } from "./timings.js";

let scene: Scene;
afterEach(() => scene.close());

it("Timings that many ask for at once are computed in turns of the event loop", async () => {
  scene = await Scene.open();
  const endpoint = await scene.endpoint();
  await scene.running(endpoint, await scene.worker(endpoint));
  const jobs = await scene.parts.reader.recent({ endpointNo: endpoint.no, limit: 1, now: scene.clock.now() });
  const reader = { ...scene.parts.reader, recent: async () => jobs }; // as PostgreSQL's, which uses no turns
  const ask = () => showTimings({ ...scene.parts, reader }, endpoint);
  const { value, waits } = await withTurns(() => Promise.all([ask(), ask(), ask()]));
  expect(value.map(({ jobs }) => jobs)).toEqual([1, 1, 1]);
  expect(waits).toBe(3);
});
