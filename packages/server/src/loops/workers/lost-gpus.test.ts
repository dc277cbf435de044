import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HostFacts } from "../../domain/hosts/host.js";
import { limits } from "../../limits/index.js";
import { l4, plainHost } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

const whole: HostFacts = { ...plainHost, gpus: [l4(0), l4(1)], gpusEnforced: true };

let scene: Scene;
let facts: HostFacts;
beforeEach(async () => {
  facts = whole;
  scene = await Scene.open({ here: { facts: () => facts } });
});
afterEach(() => scene.close());

/** A worker that has GPU 0 and runs a job; then the host's facts change, and it checks its workers. */
async function becomes(next: Partial<HostFacts>) {
  await scene.runAll();
  const endpoint = await scene.endpoint({ gpuTypeIds: ["NVIDIA L4"], workersMax: 2 });
  const jobId = await scene.submit(endpoint);
  await scene.advance(1_000);
  const [worker] = scene.workersOf(endpoint);
  expect(worker?.row.resources?.gpus.map(({ id }) => id)).toEqual(["GPU-0"]);
  expect((await scene.take(worker!)).map(({ id }) => id)).toEqual([jobId]);
  facts = { ...facts, ...next };
  scene.parts.bell.ring("demand");
  scene.parts.bell.ring("workers");
  await scene.advance(limits.loopGapMs);
  return { endpoint, worker: worker!, jobId };
}

describe("A worker whose GPU is lost", () => {
  const lost = { gpus: [l4(1)], gpuProblem: "GPU0000:05:00.0 cannot be reached (Unknown Error)." };

  it("gets no more jobs, and may finish its present job", async () => {
    const { endpoint, worker, jobId } = await becomes(lost);
    expect(worker.row).toMatchObject({ wanted: "closed", trouble: { why: expect.stringContaining("GPU-0") } });
    await scene.done(worker, jobId);
    expect(await scene.state(endpoint, jobId)).toBe("COMPLETED");
  });

  it("is followed by a worker with another GPU", async () => {
    const { endpoint, worker } = await becomes(lost);
    await scene.submit(endpoint);
    await scene.advance(10_000);
    const next = scene.workersOf(endpoint).find(({ row }) => row.no !== worker.row.no);
    expect(next?.row.resources?.gpus.map(({ id }) => id)).toEqual(["GPU-1"]);
  });

  it("is stopped if it is frozen, because it must not be resumed", async () => {
    await scene.runAll();
    const endpoint = await scene.endpoint({ flashboot: true, idleTimeout: 1, workersMax: 1 });
    const jobId = await scene.submit(endpoint);
    await scene.advance(1_000);
    const worker = scene.workersOf(endpoint)[0]!;
    await scene.take(worker);
    await scene.done(worker, jobId);
    await scene.advance(1_200);
    expect(worker.row.wanted).toBe("paused");
    facts = { ...facts, ...lost };
    scene.parts.bell.ring("workers");
    await scene.advance(limits.loopGapMs);
    expect(worker.row).toMatchObject({ wanted: "stopped", trouble: { why: expect.stringContaining("GPU-0") } });
    await scene.submit(endpoint);
    await scene.advance(100);
    expect(await scene.take(worker)).toEqual([]);
  });

  it("gets no more jobs from the next server if the previous server died as it detected the loss", async () => {
    const { endpoint } = await becomes({});
    scene = await scene.restart();
    const [found] = scene.workersOf(endpoint);
    const trouble = { at: scene.parts.clock.now(), why: "its GPU is gone" };
    await scene.parts.registry.changeWorker(found!, { by: "unhealthy", trouble });
    facts = { ...facts, ...lost };
    await scene.runAll();
    await scene.advance(100);
    expect(found?.row.wanted).toBe("closed");
  });

  it("is left alone if only the driver does not answer", async () => {
    const { worker } = await becomes({ gpus: [], gpuProblem: "Restart the machine.", gpusUnseen: true });
    expect([worker.row.wanted, worker.row.trouble]).toEqual(["running", undefined]);
  });

  it("is left alone if something else is wrong", async () => {
    const { worker } = await becomes({ gpuProblem: "GPU 1 (GPU-1) is in MIG mode." });
    expect([worker.row.wanted, worker.row.trouble]).toEqual(["running", undefined]);
  });
});
