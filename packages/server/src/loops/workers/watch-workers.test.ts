import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { cancelJob } from "../../operations/jobs/change-job.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  scene.run(scene.loops.watch());
  await scene.settle();
});
afterEach(() => scene.close());

const isLost = () => worker.row.killAt !== undefined && worker.row.killAt <= scene.clock.now();
const why = () => worker.row.exit?.note;

/** The worker pings every 4 s with these jobs, for this time. */
async function pinging(ms: number, ...jobIds: string[]): Promise<void> {
  for (let passed = 0; passed < ms; passed += 4_000) {
    await scene.ping(worker, ...jobIds);
    await scene.advance(4_000);
  }
}

describe("A job that a take has given to a worker which had already ended", () => {
  it("is given back if there are several servers", async () => {
    const id = await scene.running(endpoint, worker);
    Object.defineProperty(scene.parts.registry, "isShared", { get: () => true });
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
    scene.parts.bell.ring("workers");
    await scene.advance(limits.watchMs);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 0 });
  });
});

describe("A silent worker", () => {
  it("is lost 30 s after its last call, once it has pinged", async () => {
    await scene.take(worker);
    await scene.ping(worker);
    await scene.advance(29_800);
    expect(isLost()).toBe(false);
    await scene.advance(500);
    expect(isLost()).toBe(true);
    expect(why()).toMatch(/silent/);
  });

  it("is not lost by silence while it loads, nor while it has never pinged", async () => {
    await scene.advance(600_000);
    expect(isLost()).toBe(false);
    await scene.running(endpoint, worker);
    await scene.advance(600_000);
    expect(isLost()).toBe(false);
  });

  it("is lost when its pings stop, even if it pinged before it asked for a job", async () => {
    await pinging(60_000);
    expect(isLost()).toBe(false);
    await scene.advance(31_000);
    expect(isLost()).toBe(true);
  });

  it("is kept by any call: a take, a result, a chunk, a poll for stops", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.ping(worker, id);
    const calls = [
      () => scene.chunk(worker, id, { output: 1 }),
      () => scene.done(worker, id, { status: "IN_PROGRESS", output: 1 }),
      async () => void scene.stops(worker),
      () => scene.take(worker),
      () => scene.done(worker, id),
    ];
    for (const call of calls) {
      await scene.advance(25_000);
      await call();
    }
    expect(isLost()).toBe(false);
    await scene.advance(31_000);
    expect(isLost()).toBe(true);
  });

  it("that pinged before a restart of the server counts as silent from the restart on", async () => {
    await scene.take(worker);
    await scene.ping(worker);
    await scene.advance(29_000);
    scene = await scene.restart();
    worker = scene.workersOf(endpoint)[0]!;
    scene.run(scene.loops.watch());
    await scene.advance(29_800);
    expect(isLost()).toBe(false);
    await scene.advance(500);
    expect(isLost()).toBe(true);
  });
});

describe("A worker that pings, but neither holds a job nor asks for one", () => {
  it("is lost after 2 minutes", async () => {
    await scene.take(worker);
    await pinging(116_000);
    expect(isLost()).toBe(false);
    await pinging(8_000);
    expect(isLost()).toBe(true);
    expect(why()).toMatch(/neither holds a job nor asks/);
  });

  it("is lost even if it names a job that had counted as stopped", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    await scene.ping(worker); // sent before it had the job, and late
    await pinging(116_000, id);
    expect(isLost()).toBe(false);
    await pinging(8_000, id);
    expect(isLost()).toBe(true);
  });

  it("is not lost while it holds a job", async () => {
    const id = await scene.running(endpoint, worker);
    await pinging(300_000, id);
    expect(isLost()).toBe(false);
  });

  it("is not lost while its poll is held", async () => {
    for (let n = 0; n < 10; n++) {
      const poll = scene.poll(worker);
      await pinging(20_000);
      expect(poll.jobs).toEqual([]);
    }
    expect(isLost()).toBe(false);
  });

  it("is not lost in the moment between a job of three minutes and its next poll", async () => {
    const id = await scene.running(endpoint, worker);
    await pinging(180_000, id);
    await scene.done(worker, id);
    await scene.ping(await scene.worker(endpoint)); // something else about workers has changed
    await scene.advance(500);
    expect(isLost()).toBe(false);
  });
});

describe("A job that its worker was told to stop", () => {
  it("and that does not stop within 5 s has its worker replaced, with 2 s of grace", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    const told = scene.clock.now();
    await scene.advance(4_900);
    expect(worker.row.wanted).toBe("running");
    await scene.advance(300);
    expect(worker.row.wanted).toBe("stopped");
    expect(worker.row.killAt! - told).toBeLessThanOrEqual(7_200);
  });

  it("and that stops in time leaves its worker alone", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    await scene.advance(3_000);
    await scene.ping(worker);
    await scene.advance(4_000);
    expect(worker.row.wanted).toBe("running");
  });

  it("beside other jobs has its worker closed after 5 s, and stopped after 30 s", async () => {
    const stuck = await scene.running(endpoint, worker);
    const other = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, stuck);
    await scene.advance(5_200);
    expect(worker.row.wanted).toBe("closed");
    await pinging(24_000, stuck, other);
    expect(worker.row.wanted).toBe("closed");
    await pinging(4_000, stuck, other);
    expect(worker.row.wanted).toBe("stopped");
    expect(await scene.state(endpoint, other)).toBe("IN_PROGRESS");
  });

  it("beside other jobs has its worker stopped as soon as the others have ended", async () => {
    const stuck = await scene.running(endpoint, worker);
    const other = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, stuck);
    await scene.advance(5_200);
    await scene.done(worker, other);
    scene.parts.bell.ring("workers");
    await scene.advance(500);
    expect(worker.row.wanted).toBe("stopped");
  });

  it("because it timed out is treated alike, and the hung worker is replaced", async () => {
    scene.run(scene.loops.timeOut());
    const id = await scene.running(endpoint, worker, { input: {}, policy: { executionTimeout: 5_000 } });
    await pinging(8_000, id);
    expect(await scene.state(endpoint, id)).toBe("TIMED_OUT");
    await pinging(4_000, id);
    expect(worker.row.wanted).toBe("stopped");
  });
});
