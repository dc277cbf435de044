import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { Scene } from "../testing/scene-fixture.js";
import type { Loop } from "./loop.js";

let scene: Scene;
let ticks: number[];
beforeEach(async () => {
  scene = await Scene.open();
  ticks = [];
});
afterEach(() => scene.close());

const startAt = () => scene.clock.now();
function run(tick: Loop["tick"], gapMs = 10): void {
  const noted: Loop["tick"] = (now, signal) => {
    ticks.push(now);
    return tick(now, signal);
  };
  scene.run({ name: "test", topics: ["demand"], gapMs, tick: noted });
}

describe("A loop", () => {
  it("ticks at its start and when it is due, and otherwise never", async () => {
    const at = startAt();
    run(async (now) => (now < at + 5_000 ? now + 2_000 : undefined));
    await scene.advance(3_600_000);
    expect(ticks.map((tick) => tick - at)).toEqual([0, 2_000, 4_000, 6_000]);
  });

  it("ticks when rung, but not more often than its gap allows", async () => {
    run(async () => undefined, 100);
    await scene.advance(1_000);
    for (let n = 0; n < 10; n++) {
      scene.parts.bell.ring("demand");
      await scene.advance(10);
    }
    await scene.advance(1_000);
    expect(ticks).toHaveLength(3);
  });

  it("never overlaps itself, and ticks again if it was rung meanwhile", async () => {
    let running = 0;
    let most = 0;
    run(async () => {
      most = Math.max(most, ++running);
      await scene.clock.sleep(500);
      running--;
      return undefined;
    });
    await scene.advance(100);
    scene.parts.bell.ring("demand");
    scene.parts.bell.ring("demand");
    await scene.advance(5_000);
    expect([most, ticks.length]).toEqual([1, 2]);
  });

  it("that failed reports it, and is retried after a while", async () => {
    run(async () => {
      if (ticks.length === 1) throw new Error("the database is away");
      return undefined;
    });
    await scene.advance(limits.netMs - 100);
    expect([ticks.length, scene.warnings().length]).toEqual([1, 1]);
    await scene.advance(200);
    expect([ticks.length, scene.warnings().length]).toEqual([2, 1]);
  });
});

it("With every loop running and nothing to do, almost nothing happens in a day", async () => {
  await scene.endpoint();
  await scene.runAll();
  await scene.advance(60_000);
  const before = scene.clock.wakes;
  await scene.advance(24 * 3_600_000);
  expect(scene.clock.wakes - before).toBeLessThan(20);
});
