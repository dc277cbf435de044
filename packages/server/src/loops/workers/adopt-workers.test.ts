import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { stopWorker } from "../../operations/workers/worker-life.js";
import { StartUnsure } from "../../provider.js";
import { Scene } from "../../testing/scene-fixture.js";
import { startedWorker, wantedWorker } from "../../testing/tended-worker-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

const wanted = () => wantedWorker(scene, endpoint);
const started = () => startedWorker(scene, endpoint);
/** A worker that the loop has started although its row does not say so, as if the server died in between. */
async function startedUnnoted(): Promise<LiveWorker> {
  const { change } = scene.stores.workers;
  vi.spyOn(scene.stores.workers, "change").mockImplementation((no, made) =>
    made.by === "start" ? Promise.resolve(true) : change(no, made),
  );
  return started();
}
const stop = (worker: LiveWorker, graceMs = 30_000) => stopWorker(scene.parts, worker, "a test", graceMs);
const workerNow = (worker: LiveWorker) => scene.parts.registry.worker(worker.row.id) as LiveWorker;
async function restart(workerUrl?: string): Promise<void> {
  scene = await scene.restart(workerUrl === undefined ? {} : { workerUrl });
  scene.run(scene.loops.tend());
  await scene.advance(5);
}

describe("After a restart of the server", () => {
  it("a worker that still runs is adopted: it keeps its job, and its result is accepted", async () => {
    const worker = await started();
    const id = await scene.running(endpoint, worker);
    await restart();
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look"]);
    await scene.done(workerNow(worker), id, { output: 1 });
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    scene.provider.end(worker.row.id, { code: 0 });
    await scene.advance(5);
    expect(workerNow(worker).row.endedAt).toBeDefined();
  });

  it.each(["runs", "has ended"])(
    "the secrets of the jobs of a worker that %s are masked in its log again",
    async (state) => {
      const worker = await started();
      const s3Config = { accessId: "id", accessSecret: "a-secret", bucketName: "b", endpointUrl: "http://s3" };
      await scene.running(endpoint, worker, { input: {}, s3Config });
      const hide = vi.spyOn(scene.provider, "hide");
      if (state === "has ended") {
        scene.provider.disconnect();
        scene.provider.end(worker.row.id, { code: 1 });
      }
      await restart();
      expect(hide.mock.calls).toEqual([[worker.row.id, "a-secret"]]);
    },
  );

  it("a worker that ended meanwhile is recorded as ended, and its job is given back", async () => {
    const worker = await started();
    const id = await scene.running(endpoint, worker);
    scene.provider.disconnect();
    scene.provider.end(worker.row.id, { code: 137 });
    await restart();
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
    expect(workerNow(worker).row.exit?.note).toContain("exit code 137");
  });

  it("a worker that the provider does not know is killed by its handle, and its job is given back", async () => {
    const worker = await started();
    const id = await scene.running(endpoint, worker);
    scene.provider.vanish(worker.row.id);
    await restart();
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look", "kill", "forget"]);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("a worker that the provider does not know and that had not asked for a job yet is not a failed start", async () => {
    const worker = await started();
    scene.provider.vanish(worker.row.id);
    await restart();
    expect(workerNow(worker).row.endedAt).toBe(scene.clock.now() - 5);
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("a worker of which only the row was written is started", async () => {
    const worker = await wanted();
    await restart();
    expect(scene.provider.isRunning(worker.row.id)).toBe(true);
  });

  it("a worker that may have been started already is never started twice", async () => {
    const worker = await startedUnnoted();
    await restart();
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look"]);
    expect(workerNow(worker).row).toMatchObject({ startedAt: scene.clock.now() - 5, handle: { ref: { pid: 100 } } });
  });

  it("a worker that may have been started and is not found is ended for good, and another is started", async () => {
    const worker = await startedUnnoted();
    const id = await scene.running(endpoint, worker);
    scene.provider.vanish(worker.row.id);
    await restart();
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look", "kill", "forget"]);
    expect(workerNow(worker).row.endedAt).toBe(scene.clock.now() - 5);
    expect(scene.now(endpoint).failedStarts).toBe(0);
    scene.run(scene.loops.scale());
    await scene.advance(50);
    const [next] = scene.workersOf(endpoint);
    expect(next?.row.id).not.toBe(worker.row.id);
    expect(await scene.take(next!)).toMatchObject([{ id }]);
  });

  it("a worker that certainly was not started is started again, with the secret in its row", async () => {
    scene.provider.knowsAbsence = true;
    scene.provider.failNext("start", new StartUnsure("the engine went away"));
    scene.run(scene.loops.tend());
    const worker = await wanted();
    await scene.advance(5);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look", "start"]);
    expect(worker.row.secretHash).toBe(scene.parts.vault.hash(scene.provider.secretOf(worker.row.id)));
  });

  it("a worker that was given another server address is stopped, and its job excused", async () => {
    const worker = await started();
    const id = await scene.running(endpoint, worker);
    await restart("http://127.0.0.1:9000");
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look", "stop"]);
    scene.provider.end(worker.row.id, { code: 0 });
    await scene.advance(5);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 0 });
  });

  it("a worker that was being stopped is asked again, and killed when its grace is over", async () => {
    const worker = await started();
    await stop(worker);
    await scene.advance(10_000);
    await restart();
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "stop", "look", "stop"]);
    await scene.advance(19_000);
    expect(scene.provider.isRunning(worker.row.id)).toBe(true);
    await scene.advance(2_000);
    expect(scene.provider.isRunning(worker.row.id)).toBe(false);
  });

  it("a worker that served before it ended is not a failed start", async () => {
    const worker = await started();
    await scene.done(worker, await scene.running(endpoint, worker));
    await restart();
    scene.provider.end(worker.row.id, { code: 1 });
    await scene.advance(5);
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("a check that failed is retried", async () => {
    const worker = await started();
    scene.provider.failNext("look", "the keeper does not answer");
    await restart();
    expect(scene.warnings()).toHaveLength(1);
    await scene.advance(6_000);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "look", "look"]);
  });
});
