import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { Exit } from "../../domain/workers/worker.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { stopWorker } from "../../operations/workers/worker-life.js";
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
const stop = (worker: LiveWorker, graceMs = 30_000) => stopWorker(scene.parts, worker, "a test", graceMs);

describe("The end of a worker's process", () => {
  it("gives its job back at once", async () => {
    const worker = await started();
    const id = await scene.running(endpoint, worker);
    scene.provider.end(worker.row.id, { signal: "SIGKILL" });
    await scene.advance(5);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
    expect(worker.row.exit).toMatchObject({ signal: "SIGKILL", cause: "memory" });
  });

  /** A job whose workers all end like this, after `before` has run for each of them. */
  async function lostJob(exit: Partial<Exit>, before: (worker: LiveWorker, start: number) => void) {
    scene.run(scene.loops.tend());
    const id = await scene.submit(endpoint);
    for (let start = 1; start <= limits.startsMax; start++) {
      const worker = await wanted();
      await scene.advance(5);
      expect(await scene.take(worker)).toMatchObject([{ id }]);
      before(worker, start);
      scene.provider.end(worker.row.id, exit);
      await scene.advance(5);
    }
    const { status, error } = await scene.status(endpoint, id);
    expect(status).toBe("FAILED");
    return error;
  }
  const lost = "Each worker that ran this job was lost (3 starts in all). The last of them:";

  it("is described, with its last lines, in the error of a job that is lost for the last time", async () => {
    const error = await lostJob({ code: 3 }, ({ row }, start) =>
      scene.provider.logTails.set(row.id, `start ${start}\0\ngiving up`),
    );
    expect(error).toBe(`${lost} it ended with exit code 3. Its log ends:\nstart 3\ngiving up`);
  });

  it("is described by its signal if its log cannot be read", async () => {
    const error = await lostJob({ signal: "SIGSEGV" }, () => {
      scene.provider.logTail = () => Promise.reject(new Error("no engine answers"));
    });
    expect(error).toBe(`${lost} it was ended by SIGSEGV`);
  });

  it("is detected even if it comes before the start was recorded", async () => {
    scene.run(scene.loops.tend());
    const worker = await wanted();
    // The first write stores the secret, the second the handle.
    scene.during("workers.change", () =>
      scene.during("workers.change", () => scene.provider.end(worker.row.id, { code: 3 })),
    );
    await scene.advance(5);
    expect(scene.provider.callsOf(worker.row.id)).toContain("start");
    expect(worker.row.endedAt).toBeDefined();
  });
});

describe("Stopping a worker", () => {
  it("asks it first; its polls are answered only then", async () => {
    const worker = await started();
    const poll = scene.poll(worker);
    await scene.settle();
    await stop(worker);
    await scene.settle();
    await scene.advance(5);
    expect(poll.jobs).toEqual([]);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "stop"]);
    scene.provider.end(worker.row.id, { code: 0 });
    await scene.advance(60_000);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "stop", "look", "forget"]);
    expect(scene.now(endpoint).failedStarts).toBe(0);
  });

  it("kills it when its grace is over, and excuses its job", async () => {
    const worker = await started();
    const id = await scene.running(endpoint, worker);
    await stop(worker);
    await scene.advance(29_900);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "stop"]);
    await scene.advance(200);
    expect(scene.provider.isRunning(worker.row.id)).toBe(false);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 0 });
  });

  it("that was never started does not start it", async () => {
    const worker = await wanted();
    await stop(worker);
    scene.run(scene.loops.tend());
    await scene.advance(5);
    expect(worker.row.endedAt).toBeDefined();
    expect(scene.provider.calls.filter((call) => call.startsWith("start"))).toEqual([]);
  });

  it("tries a kill again that failed", async () => {
    const worker = await started();
    scene.provider.failNext("kill", "the keeper does not answer");
    await stop(worker, 1_000);
    await scene.advance(30_000);
    expect(scene.provider.isRunning(worker.row.id)).toBe(false);
  });

  it("retries the request to stop if that failed", async () => {
    const worker = await started();
    scene.provider.failNext("stop", "the keeper does not answer");
    await stop(worker);
    await scene.advance(15_000);
    expect(scene.provider.callsOf(worker.row.id)).toEqual(["start", "stop", "stop"]);
  });
});
