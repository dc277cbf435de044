import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import type { Loop } from "../loops/loop.js";
import type { LiveWorker } from "../memory/registry.js";
import { workerChanges } from "../testing/facts-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { type LoopParts, runLoops } from "./loops.js";

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const idle: Loop = { name: "idle", topics: [], gapMs: 0, tick: async () => undefined };

it("A server forgets workers a day after they have ended", async () => {
  const endpoint = await scene.endpoint();
  const worker = await scene.worker(endpoint);
  const known = () => scene.parts.registry.worker(worker.row.id);
  const loops = runLoops(scene.parts, {
    tending: scene.tending,
    polling: { ping: async () => ({ status: 200 }), forget: () => {} },
    sender: scene.sender,
    stock: { loop: () => idle },
    clusters: [],
    measuring: { loop: () => idle },
    logsDir: join(scene.directory, "logs"),
    noteTime: () => {},
    shared: undefined,
    follow: () => {},
  } as unknown as LoopParts);
  await scene.settle();
  await scene.parts.registry.changeWorker(known() as LiveWorker, {
    ...workerChanges.end,
    endedAt: scene.clock.now(),
  });
  await scene.advance(limits.workerRowKeptMs - limits.forgetMs);
  expect(known()).toBeDefined();
  await scene.advance(2 * limits.forgetMs);
  expect(known()).toBeUndefined();
  await loops.stopDeciding();
  await loops.stopServing();
});
