import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { updateEndpoint } from "../../operations/endpoints/save-endpoint.js";
import { cancelJob } from "../../operations/jobs/change-job.js";
import { pauseWorker, resumeWorker } from "../../operations/workers/worker-life.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const only = (): LiveWorker => scene.workersOf(endpoint)[0] as LiveWorker;

/** A worker that has done its job, and whose poll is held. */
async function idleWorker(more: object = {}) {
  endpoint = await scene.endpoint({ flashboot: true, idleTimeout: 5, workersMax: 1, ...more });
  await scene.runAll();
  const id = await scene.submit(endpoint);
  await scene.advance(50);
  const worker = only();
  expect(await scene.take(worker)).toMatchObject([{ id }]);
  await scene.done(worker, id);
  await scene.ping(worker);
  const poll = scene.poll(worker);
  await scene.settle();
  return { worker, poll };
}

/** A worker that was frozen for being idle. */
async function paused(more: object = {}) {
  const { worker, poll } = await idleWorker(more);
  await scene.advance(5_100);
  await poll.answer;
  expect(worker.row).toMatchObject({ wanted: "paused", pausedAt: expect.any(Number) });
  return worker;
}
const calls = (worker: LiveWorker) => scene.provider.callsOf(worker.row.id);

describe("An idle worker with FlashBoot", () => {
  it("is frozen before its poll is answered, and polls again as soon as it wakes", async () => {
    const { worker, poll } = await idleWorker();
    let wasAnswered: boolean | undefined;
    scene.provider.onCall = (call) => {
      if (call === `pause ${worker.row.id}`) wasAnswered = poll.jobs !== undefined;
    };
    await scene.advance(5_100);
    await poll.answer;
    expect([wasAnswered, poll.jobs]).toEqual([false, []]);
    expect(calls(worker)).toEqual(["start", "pause"]);
  });

  it("is not frozen if a job came at the last moment", async () => {
    const { worker, poll } = await idleWorker();
    let submitted: Promise<string> | undefined;
    scene.during("workers.change", () => {
      submitted = scene.submit(endpoint);
    });
    await scene.advance(5_100);
    await submitted;
    await scene.advance(200);
    const id = (await submitted) as string;
    const taken = poll.jobs?.[0]?.id ?? (await scene.take(worker))[0]?.id;
    expect(taken).toBe(id);
    expect(worker.row.wanted).toBe("running");
  });

  it("resumes for the next job, and runs it", async () => {
    const worker = await paused();
    const id = await scene.submit(endpoint);
    await scene.advance(50);
    expect(calls(worker)).toEqual(["start", "pause", "resume"]);
    expect(await scene.take(worker)).toMatchObject([{ id }]);
    await scene.done(worker, id);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    expect(scene.workersOf(endpoint)).toHaveLength(1);
  });

  it("is frozen again after its next idle time", async () => {
    const worker = await paused();
    const id = await scene.submit(endpoint);
    await scene.advance(50);
    await scene.take(worker);
    await scene.done(worker, id);
    await scene.advance(4_000);
    expect(worker.row.wanted).toBe("running");
    await scene.take(worker);
    await scene.advance(1_100);
    expect(calls(worker)).toEqual(["start", "pause", "resume", "pause"]);
  });

  it("is never judged by its silence, however long that is", async () => {
    const worker = await paused();
    await scene.advance(1_800_000);
    expect(worker.row).toMatchObject({ wanted: "paused", killAt: undefined });
  });

  it("wakes after its engine has failed to wake it", async () => {
    const worker = await paused();
    for (let n = 0; n < 3; n++) scene.provider.failNext("resume", "the engine does not answer");
    const id = await scene.submit(endpoint);
    await scene.advance(3_200);
    expect(scene.provider.isPaused(worker.row.id)).toBe(false);
    expect(await scene.take(worker)).toMatchObject([{ id }]);
    expect(worker.row.killAt).toBeUndefined();
  });

  it("has a whole lease when it resumes", async () => {
    const worker = await paused();
    await scene.advance(1_800_000);
    const id = await scene.submit(endpoint);
    await scene.advance(4_000);
    await scene.take(worker);
    await scene.advance(20_000);
    expect(worker.row.killAt).toBeUndefined();
    await scene.ping(worker, id);
  });

  it("is replaced if it is silent for 5 s after it was resumed, and its job goes to another worker", async () => {
    const worker = await paused();
    const id = await scene.submit(endpoint);
    await scene.advance(4_900);
    expect(worker.row.killAt).toBeUndefined();
    await scene.advance(1_200);
    expect(calls(worker)).toContain("kill");
    const next = only();
    expect(next.row.id).not.toBe(worker.row.id);
    expect(await scene.take(next)).toMatchObject([{ id, starts: 1 }]);
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("gives its memory back after the configured time", async () => {
    const worker = await paused();
    await scene.advance(3_600_000);
    expect(worker.row.wanted).toBe("stopped");
  });

  it("gives its memory back if its host runs out of it, the longest paused first", async () => {
    let free = 1;
    await scene.close();
    scene = await Scene.open({ here: { freeMemoryShare: () => free } });
    const first = await paused();
    await scene.advance(30_000);
    expect(first.row.wanted).toBe("paused");
    endpoint = await scene.endpoint({ flashboot: true, idleTimeout: 1 });
    const id = await scene.submit(endpoint);
    await scene.advance(50);
    const second = only();
    await scene.take(second);
    await scene.done(second, id);
    await scene.advance(2_000);
    expect(second.row.wanted).toBe("paused");
    free = 0.09;
    await scene.advance(6_000);
    expect([first.row.wanted, second.row.wanted]).toEqual(["stopped", "paused"]);
  });

  it("is stopped if a new version comes", async () => {
    const worker = await paused();
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    await scene.advance(50);
    expect(worker.row.wanted).toBe("stopped");
  });

  it("is found again by the next server, still frozen, and resumes", async () => {
    const worker = await paused();
    scene = await scene.restart();
    await scene.runAll();
    await scene.advance(60_000);
    expect(scene.provider.isPaused(worker.row.id)).toBe(true);
    const id = await scene.submit(endpoint);
    await scene.advance(50);
    expect(scene.provider.isPaused(worker.row.id)).toBe(false);
    expect(await scene.take(only())).toMatchObject([{ id }]);
  });

  it("resumes with the next server if the previous one died while waking it", async () => {
    const worker = await paused();
    await scene.parts.registry.changeWorker(worker, {
      by: "resume",
      resumedAt: scene.clock.now(),
      pausedMs: 0,
      why: "",
    });
    scene = await scene.restart();
    await scene.runAll();
    await scene.advance(50);
    expect(scene.provider.isPaused(worker.row.id)).toBe(false);
    expect(only().row.resumedAt).toBeDefined();
  });

  it("resumes with the next server if the previous one died before recording that it was frozen", async () => {
    const { worker } = await idleWorker();
    await pauseWorker(scene.parts, worker, "idle for 5 s");
    await scene.provider.pause(worker.row.id);
    await resumeWorker(scene.parts, worker, "a job waits");
    scene = await scene.restart();
    await scene.runAll();
    await scene.advance(50);
    expect(scene.provider.isPaused(worker.row.id)).toBe(false);
  });

  it("resumes with the next server if that wakes it before knowing that it is frozen", async () => {
    const { worker } = await idleWorker();
    await pauseWorker(scene.parts, worker, "idle for 5 s");
    await scene.provider.pause(worker.row.id);
    scene = await scene.restart();
    scene.provider.onCall = (call) => {
      if (call === `look ${worker.row.id}`) void resumeWorker(scene.parts, only(), "a job waits");
    };
    await scene.runAll();
    await scene.advance(50);
    expect(only().row.wanted).toBe("running");
    expect(scene.provider.isPaused(worker.row.id)).toBe(false);
  });

  it("is considered again if the job that kept it from being frozen has already ended", async () => {
    const { worker } = await idleWorker({ idleTimeout: 1 });
    const id = await scene.submit(endpoint);
    await scene.advance(50);
    await scene.take(worker);
    await cancelJob(scene.parts, endpoint, id);
    await scene.advance(1_200); // it is idle, but has not confirmed the stop
    expect([worker.row.wanted, calls(worker)]).toEqual(["running", ["start", "resume"]]);
    await scene.ping(worker); // this confirms it
    await scene.advance(1_200);
    expect(worker.row.wanted).toBe("paused");
  });

  it("resumes for the first job after a server that died between the freeze and its record", async () => {
    const { worker } = await idleWorker();
    await pauseWorker(scene.parts, worker, "idle for 5 s");
    await scene.provider.pause(worker.row.id);
    scene = await scene.restart();
    const id = await scene.submit(endpoint);
    await scene.runAll();
    await scene.advance(1_000);
    expect(scene.provider.isPaused(worker.row.id)).toBe(false);
    expect(await scene.take(only())).toMatchObject([{ id }]);
  });

  it("whose pause is cancelled while its poll is held back is answered at once, and polls again", async () => {
    endpoint = await scene.endpoint({ flashboot: true, workersMin: 1, workersMax: 1, idleTimeout: 600 });
    await scene.runAll();
    await scene.advance(50);
    const worker = only();
    await scene.take(worker);
    await pauseWorker(scene.parts, worker, "idle");
    const poll = scene.poll(worker);
    await resumeWorker(scene.parts, worker, "a job waits");
    await scene.advance(1_000);
    expect(poll.jobs).toEqual([]);
    const id = await scene.submit(endpoint);
    expect(await scene.take(worker)).toMatchObject([{ id }]);
  });

  it.each([1, 2])("is replaced if its engine never wakes it, with workersMax %i", async (workersMax) => {
    const worker = await paused({ workersMax });
    for (let n = 0; n < 400; n++) scene.provider.failNext("resume", "the engine does not answer");
    const id = await scene.submit(endpoint);
    await scene.advance(600_000);
    expect(worker.row.endedAt ?? worker.row.killAt).toBeDefined();
    const next = scene.workersOf(endpoint).find(({ row }) => row.id !== worker.row.id);
    expect(await scene.take(next!)).toMatchObject([{ id }]);
  });

  it("is the only one of two that is woken for one job that has waited long", async () => {
    const { worker: first } = await idleWorker({ workersMax: 6, scalerValue: 1, idleTimeout: 1 });
    const [a, b] = [await scene.submit(endpoint), await scene.submit(endpoint)];
    await scene.advance(1_100);
    const second = scene.workersOf(endpoint)[1]!;
    expect(await scene.take(second)).toMatchObject([{ id: b }]);
    await scene.advance(50);
    expect(scene.workersOf(endpoint)).toHaveLength(2);
    await scene.done(second, b);
    await scene.advance(1_500);
    expect([first.row.wanted, second.row.wanted]).toEqual(["running", "paused"]);
    expect(await scene.state(endpoint, a)).toBe("IN_PROGRESS");
    await scene.submit(endpoint);
    await scene.advance(1_200);
    expect(scene.workersOf(endpoint)).toHaveLength(2);
    expect(second.row.wanted).toBe("running");
  });

  it("that ended while it was frozen is recorded as such, without a cause", async () => {
    const worker = await paused();
    scene.provider.end(worker.row.id, { signal: "SIGKILL" });
    await scene.advance(50);
    expect(worker.row.endedAt).toBeDefined();
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });
});
