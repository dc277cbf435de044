import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { Scene } from "../../testing/scene-fixture.js";
import { loseJob } from "./change-job.js";
import { returnJobs } from "./take-jobs.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

describe("A job that is given back excused", () => {
  it("does not count as a start, nor as a retry, however often", async () => {
    const id = await scene.submit(endpoint);
    for (let n = 0; n < 5; n++) {
      const jobs = await scene.take(worker);
      await returnJobs(scene.parts, worker, jobs);
      expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 0 });
    }
    expect((await scene.health(endpoint)).retried).toBe(0);
    for (let start = 1; start <= 3; start++) {
      expect(await scene.take(worker)).toMatchObject([{ id }]);
      const [held] = await scene.stores.reader.heldBy(worker.row.no);
      await loseJob(scene.parts, held!, "It was lost", false);
      expect(await scene.state(endpoint, id)).toBe(start < 3 ? "IN_QUEUE" : "FAILED");
    }
    expect(await scene.status(endpoint, id)).toMatchObject({ error: "It was lost (3 starts in all).", retries: 2 });
  });

  it("goes to the front, and to the next poll at once", async () => {
    const first = await scene.submit(endpoint);
    await scene.submit(endpoint);
    const jobs = await scene.take(worker);
    await returnJobs(scene.parts, worker, jobs);
    expect(await scene.take(await scene.worker(endpoint))).toMatchObject([{ id: first }]);
  });

  it("counts its delay from its submission, and each start has the whole executionTimeout", async () => {
    const id = await scene.submit(endpoint, { input: {}, policy: { executionTimeout: 10_000 } });
    await scene.advance(1_000);
    const jobs = await scene.take(worker);
    await scene.advance(9_000);
    await returnJobs(scene.parts, worker, jobs);
    await scene.advance(5_000);
    const [again] = await scene.take(worker);
    expect(await scene.status(endpoint, id)).toMatchObject({ delayTime: 15_000, executionTime: 0 });
    expect(again!.deadlineAt).toBe(scene.clock.now() + 10_000);
  });
});
