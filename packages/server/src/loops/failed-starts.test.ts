import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { restartWorkers } from "../operations/endpoints/releases.js";
import { updateEndpoint } from "../operations/endpoints/save-endpoint.js";
import { endWorker } from "../operations/workers/worker-life.js";
import { Scene } from "../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const workers = () => scene.workersOf(endpoint);

describe("After a failed start", () => {
  it("the next one comes after 1 s, 2 s, 4 s, and finally 5 min", async () => {
    endpoint = await scene.scaled();
    await scene.submit(endpoint);
    await scene.advance(50);
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]) {
      expect(workers()).toHaveLength(1);
      await scene.crash(workers()[0]!);
      await scene.advance(pauseMs - 1);
      expect(workers()).toEqual([]);
      await scene.advance(100);
    }
    expect(await scene.status(endpoint, (await scene.submitMany(endpoint, 1))[0]!)).toMatchObject({
      waitReason: "crash_looping",
      waitDetail: expect.stringContaining("no module"),
    });
  });

  it("the pauses grow even if each worker asks for a job once before it ends", async () => {
    endpoint = await scene.scaled({ workersMin: 1, workersMax: 1 });
    const seen: number[] = [];
    for (let n = 0; n < 7; n++) {
      await scene.idle(workers()[0]!);
      await scene.crash(workers()[0]!);
      const endedAt = scene.clock.now();
      while (workers().length === 0) await scene.advance(100);
      seen.push(Math.round((scene.clock.now() - endedAt) / 1_000));
    }
    expect(seen).toEqual([1, 2, 4, 8, 16, 32, 64]);
    expect(scene.now(endpoint)).toMatchObject({ failedStarts: 7, verdict: "no module" });
  });

  it("failures before a worker that has lived long are forgotten", async () => {
    endpoint = await scene.scaled({ workersMin: 1, workersMax: 1 });
    for (let n = 0; n < 4; n++) {
      await scene.crash(workers()[0]!);
      while (workers().length === 0) await scene.advance(100);
    }
    await scene.idle(workers()[0]!);
    await scene.advance(360_000);
    await scene.crash(workers()[0]!); // it had started successfully
    expect(scene.now(endpoint).failedStarts).toBe(0);
    await scene.advance(100);
    await scene.crash(workers()[0]!);
    expect(scene.now(endpoint).failedStarts).toBe(1);
  });

  it("workers that fail one after another, beside a healthy one, make the pauses grow", async () => {
    endpoint = await scene.scaled({ workersMin: 3, workersMax: 3 });
    const [well] = workers();
    await scene.idle(well!);
    const bornAt = new Map<number, number>();
    let crashes = 0;
    for (let second = 0; second < 600; second++) {
      for (const worker of workers()) {
        if (worker === well || worker.row.no === well!.row.no) continue;
        const age = second - (bornAt.get(worker.row.no) ?? second - (bornAt.size === 0 ? 10 : 0));
        bornAt.set(worker.row.no, second - age);
        if (age < 20) continue;
        await scene.crash(worker);
        crashes++;
      }
      if (second % 15 === 0) void scene.take(well!, { holdsNothing: true });
      await scene.advance(1_000);
    }
    expect(crashes).toBeLessThan(25); // 58 if each moved the time from which the next pause counts
    expect(scene.now(endpoint).failedStarts).toBeGreaterThan(4);
  });

  it("workers that were started together count once", async () => {
    endpoint = await scene.scaled({ workersMin: 9, workersMax: 9 });
    for (const worker of workers()) await scene.crash(worker);
    expect(scene.now(endpoint).failedStarts).toBe(1);
    await scene.advance(1_100);
    expect(workers()).toHaveLength(1);
    await scene.crash(workers()[0]!);
    expect(scene.now(endpoint).failedStarts).toBe(2);
  });

  it("only one worker starts at a time, until one is ready", async () => {
    endpoint = await scene.scaled({ workersMax: 5, workersMin: 5 });
    expect(workers()).toHaveLength(5);
    for (const worker of workers()) await scene.crash(worker);
    await scene.advance(20_000);
    expect(workers()).toHaveLength(1);
    await scene.idle(workers()[0]!);
    await scene.advance(100);
    expect(workers()).toHaveLength(5);
  });

  it.each([
    { of: "the same folder is not tried once its workers have gone", env: undefined, tried: 2, failedStarts: 3 },
    { of: "another env is tried instead", env: { MODEL: "large" }, tried: 1, failedStarts: 0 },
  ])("an earlier version of $of", async ({ env, tried, failedStarts }) => {
    endpoint = await scene.scaled();
    const first = await scene.submit(endpoint);
    await scene.advance(50);
    await scene.take(workers()[0]!);
    await scene.done(workers()[0]!, first);
    if (env) await updateEndpoint(scene.parts, scene.admin, endpoint, { env });
    else await restartWorkers(scene.parts, scene.admin, endpoint.id, { isNow: true });
    await endWorker(scene.parts, workers()[0]!, { code: 0 }, "it was replaced");
    await scene.submit(endpoint);
    for (let n = 0; n < 3; n++) {
      while (workers().length === 0) await scene.advance(100);
      await scene.crash(workers()[0]!);
    }
    while (workers().length === 0) await scene.advance(100);
    expect(workers()[0]!.row.version).toBe(tried);
    expect(scene.now(endpoint)).toMatchObject({ version: 2, failedStarts });
  });

  it("a save of the endpoint ends the pause", async () => {
    endpoint = await scene.scaled();
    await scene.submit(endpoint);
    await scene.advance(50);
    for (let n = 0; n < 5; n++) {
      await scene.crash(workers()[0] ?? (await scene.worker(endpoint)));
      await scene.advance(50);
    }
    expect(workers()).toEqual([]);
    await updateEndpoint(scene.parts, scene.admin, scene.now(endpoint), { name: "try again" });
    await scene.advance(50);
    expect(workers()).toHaveLength(1);
  });
});
