import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { showDecisions } from "../../operations/show-resources.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const workers = () => scene.workersOf(endpoint);

describe("The decisions", () => {
  it("are stored once for as long as they stay the same, with their inputs", async () => {
    endpoint = await scene.scaled();
    await scene.submit(endpoint);
    await scene.advance(10_000);
    const decisions = await showDecisions(scene.parts, endpoint);
    const start = decisions.find(({ outcome }) => outcome === "start 1");
    expect(start).toMatchObject({ reason: expect.stringMatching(/a job waits/), inputs: { waiting: 1, workers: [] } });
    expect(decisions.length).toBeLessThan(6);
  });

  it("show what waited and ran, also where the scaler decides as before", async () => {
    endpoint = await scene.scaled({ idleTimeout: 600 });
    await scene.submit(endpoint);
    await scene.advance(50);
    const worker = workers()[0]!;
    for (const _ of [1, 2]) {
      const [job] = await scene.take(worker);
      await scene.advance(1_000);
      await scene.done(worker, job!.id);
      await scene.advance(300_000);
      await scene.submit(endpoint);
      await scene.advance(1_000);
    }
    const decisions = (await showDecisions(scene.parts, endpoint)).reverse();
    const running = decisions.map(({ inputs }) => inputs.running);
    expect(running.filter((count, n) => count !== running[n - 1])).toEqual([0, 1, 0, 1, 0]);
  });

  it("that stay the same are recorded seldom, however often the demand changes, and with the last of it", async () => {
    endpoint = await scene.scaled({ workersMax: 0 });
    for (let n = 0; n < 500; n++) {
      await scene.submit(endpoint);
      await scene.advance(100);
    }
    await scene.advance(60_000);
    const decisions = await showDecisions(scene.parts, endpoint);
    expect(decisions.length).toBeLessThan(12);
    expect(decisions[0]!.inputs.waiting).toBe(500);
    expect(decisions.reduce((sum, { times }) => sum + times, 0)).toBeGreaterThan(500);
  });

  it("whose writes fail are stored with the next tick, in order", async () => {
    endpoint = await scene.scaled();
    const record = vi.spyOn(scene.stores.decisions, "record");
    for (let times = 0; times < 2; times++) record.mockRejectedValueOnce(new Error("the disk is full"));
    await scene.submit(endpoint);
    await scene.advance(60_000);
    const outcomes = (await showDecisions(scene.parts, endpoint)).map(({ outcome }) => outcome).reverse();
    expect(outcomes.filter((outcome) => outcome === "start 1")).toHaveLength(1);
    expect(outcomes.indexOf("start 1")).toBeLessThan(outcomes.length - 1);
    expect(new Set(outcomes).size).toBe(outcomes.length);
  });
});
