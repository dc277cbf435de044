import { afterEach, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { Scene } from "../../testing/scene-fixture.js";
import { StartRoom } from "./start-room.js";

const plainLimits = { ...limits };
let scene: Scene;
afterEach(async () => {
  Object.assign(limits, plainLimits);
  await scene.close();
});

it("What a pass has started counts for the user's other endpoints, and each gets its first worker all the same", async () => {
  Object.assign(limits, { unreadyWorkersPerUserMax: 3 });
  scene = await Scene.open();
  const [one, two] = [await scene.endpoint({ workersMax: 9 }), await scene.endpoint({ workersMax: 9 })];
  const room = new StartRoom(scene.parts);
  expect(room.left(one)).toBe(3);
  room.take(one, 2);
  expect(room.left(two)).toBe(1);
  room.take(one, 5);
  expect(room.left(two)).toBe(1); // it has none yet
  expect(room.left({ ...two, ownerNo: two.ownerNo + 1 })).toBe(3);
});
