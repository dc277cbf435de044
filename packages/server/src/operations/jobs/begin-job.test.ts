import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { Scene } from "../../testing/scene-fixture.js";
import { endWorker } from "../workers/worker-life.js";
import { cancelJob } from "./change-job.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

/**
 * A worker that prefetches runs the first job and was handed the second; the clock has moved by a millisecond in
 * between.
 */
async function prefetched({ executionTimeout = 600_000 } = {}): Promise<[first: string, second: string]> {
  const first = await scene.submit(endpoint);
  const second = await scene.submit(endpoint, { input: {}, policy: { executionTimeout } });
  expect(await scene.take(worker, { holdsNothing: true })).toMatchObject([{ id: first }]);
  await scene.advance(1);
  expect(await scene.take(worker, { isBusy: true })).toMatchObject([{ id: second }]);
  return [first, second];
}

/** Pings as often as a worker does, each time naming these jobs. */
async function pingFor(ms: number, ...jobIds: string[]): Promise<void> {
  for (let past = 0; past < ms; past += limits.pingMs) {
    await scene.advance(limits.pingMs);
    await scene.ping(worker, ...jobIds);
  }
}

describe("A take of a single job by a worker that reports another in progress", () => {
  it("is held for a second: its worker may post a result only after the answer", async () => {
    const poll = scene.poll(worker, { isBusy: true });
    await scene.advance(limits.busyTakeHoldMs - 1);
    expect(poll.jobs).toBeUndefined();
    await scene.advance(1);
    expect(poll.jobs).toEqual([]);
  });

  it("is held for a second even if its worker is closed", async () => {
    await scene.parts.registry.changeWorker(worker, { by: "close", closedAt: scene.clock.now(), why: "" });
    const poll = scene.poll(worker, { isBusy: true });
    await scene.advance(limits.busyTakeHoldMs);
    expect(poll.jobs).toEqual([]);
  });

  it("is answered with a job that comes meanwhile", async () => {
    const poll = scene.poll(worker, { isBusy: true });
    await scene.advance(limits.busyTakeHoldMs - 1);
    const id = await scene.submit(endpoint);
    await scene.settle();
    expect(poll.jobs).toMatchObject([{ id }]);
  });
});

describe("A prefetched job", () => {
  it("is not given back while pings name an earlier job, however long that runs", async () => {
    const [first, second] = await prefetched();
    await pingFor(60_000, first);
    await scene.done(worker, first);
    await scene.ping(worker, second);
    await scene.take(worker, { isBusy: true });
    await pingFor(60_000, second);
    await scene.done(worker, second);
    expect(await scene.status(endpoint, second)).toMatchObject({ status: "COMPLETED", retries: 0 });
    expect((await scene.health(endpoint)).retried).toBe(0);
  });

  it("is not given back by a server that started meanwhile", async () => {
    const [first, second] = await prefetched();
    await pingFor(8_000, first);
    scene = await scene.restart();
    worker = scene.workersOf(endpoint)[0]!;
    await pingFor(20_000, first);
    await scene.done(worker, first);
    expect(await scene.status(endpoint, second)).toMatchObject({ status: "IN_PROGRESS", executionTime: 0, retries: 0 });
  });

  it("begins, with its times, when the result of the job before it is posted", async () => {
    const [first, second] = await prefetched();
    await pingFor(8_000, first);
    await scene.done(worker, first);
    await scene.take(worker, { isBusy: true });
    await scene.advance(2_000);
    await scene.done(worker, second);
    expect(await scene.status(endpoint, second)).toMatchObject({ delayTime: 8_001, executionTime: 2_000 });
  });

  it("has the right beginning even if the first ping came after it", async () => {
    const [first, second] = await prefetched();
    const third = await scene.submit(endpoint);
    await scene.advance(2_000);
    await scene.done(worker, first);
    expect(await scene.take(worker, { isBusy: true })).toMatchObject([{ id: third }]);
    await scene.advance(1_000);
    await scene.ping(worker, second);
    expect(await scene.status(endpoint, second)).toMatchObject({ delayTime: 2_001, executionTime: 1_000 });
    await scene.advance(1_000);
    await scene.done(worker, second);
    await scene.advance(2_000);
    await scene.done(worker, third);
    const times = await Promise.all([first, second, third].map((id) => scene.status(endpoint, id)));
    expect(times.map(({ executionTime }) => executionTime)).toEqual([2_001, 2_000, 2_000]);
  });

  it("has its whole executionTimeout from its beginning on", async () => {
    scene.run(scene.loops.timeOut());
    const [first, second] = await prefetched({ executionTimeout: 10_000 });
    await pingFor(40_000, first);
    await scene.done(worker, first);
    await scene.take(worker, { isBusy: true });
    await pingFor(8_000, second);
    await scene.advance(1_999);
    expect(await scene.state(endpoint, second)).toBe("IN_PROGRESS");
    await scene.advance(251);
    expect(await scene.state(endpoint, second)).toBe("TIMED_OUT");
  });

  it("has its whole executionTimeout even if only a ping shows its beginning", async () => {
    scene.run(scene.loops.timeOut());
    const [first, second] = await prefetched({ executionTimeout: 10_000 });
    await pingFor(8_000, first);
    await cancelJob(scene.parts, endpoint, first);
    await pingFor(8_000, second);
    expect(await scene.state(endpoint, second)).toBe("IN_PROGRESS");
    await scene.advance(2_250);
    expect(await scene.state(endpoint, second)).toBe("TIMED_OUT");
  });

  it("is given back when its worker has finished the job before it, and two pings leave it out", async () => {
    const [first, second] = await prefetched();
    await pingFor(12_000, first);
    await scene.done(worker, first);
    await pingFor(8_000);
    expect(await scene.state(endpoint, second)).toBe("IN_PROGRESS");
    await pingFor(4_000);
    expect(await scene.status(endpoint, second)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("is given back when its worker then asks for a job and reports none", async () => {
    const [first, second] = await prefetched();
    await pingFor(4_000, first);
    await scene.done(worker, first);
    await scene.advance(1);
    expect(await scene.take(worker, { holdsNothing: true })).toMatchObject([{ id: second, starts: 2 }]);
  });

  it("is given back when its worker has since taken another job, and pings leave it out", async () => {
    const [first, second] = await prefetched();
    await pingFor(4_000, first);
    await scene.done(worker, first);
    await scene.advance(1);
    const third = await scene.running(endpoint, worker);
    await pingFor(12_000, third);
    expect([await scene.state(endpoint, second), await scene.state(endpoint, third)]).toEqual([
      "IN_QUEUE",
      "IN_PROGRESS",
    ]);
  });

  it("is given back with all other jobs of its worker when the worker ends", async () => {
    const [first, second] = await prefetched();
    await pingFor(8_000, first);
    await endWorker(scene.parts, worker, { code: 1 }, "it has ended");
    const states = [await scene.state(endpoint, first), await scene.state(endpoint, second)];
    expect(states).toEqual(["IN_QUEUE", "IN_QUEUE"]);
  });
});

describe("A worker that prefetches", () => {
  it("is given a job only if no other worker can begin it now", async () => {
    const [first, second] = await prefetched();
    await pingFor(4_000, first);
    await scene.done(worker, first);
    const other = await scene.worker(endpoint);
    const polls = [scene.poll(worker, { isBusy: true }), scene.poll(other, { holdsNothing: true })];
    await scene.settle();
    const third = await scene.submit(endpoint);
    const fourth = await scene.submit(endpoint);
    await scene.settle();
    expect(polls.map(({ jobs }) => jobs?.map(({ id }) => id))).toEqual([[fourth], [third]]);
    expect(await scene.state(endpoint, second)).toBe("IN_PROGRESS");
  });

  it("is served like any other worker while it holds no job", async () => {
    const [first, second] = await prefetched();
    const other = await scene.worker(endpoint);
    const waits = scene.poll(other, { holdsNothing: true });
    await pingFor(4_000, first);
    await scene.done(worker, first);
    await scene.done(worker, second);
    const polls = [waits, scene.poll(worker, { holdsNothing: true })];
    await scene.settle();
    await scene.submit(endpoint);
    await scene.settle();
    expect(polls.map(({ jobs }) => jobs?.length)).toEqual([undefined, 1]);
  });
});

describe("A worker that runs several jobs", () => {
  it("begins its jobs at once: their times count from the take", async () => {
    const [first, second] = await prefetched();
    await scene.advance(4_000);
    await scene.ping(worker, first, second);
    await scene.advance(1_000);
    await scene.done(worker, first);
    expect(await scene.status(endpoint, second)).toMatchObject({ delayTime: 1, executionTime: 5_000 });
  });

  it("does not count as prefetching because of a ping that comes too early to name a job", async () => {
    scene.run(scene.loops.timeOut());
    const [first, second] = await prefetched({ executionTimeout: 20_000 });
    await scene.ping(worker, first);
    await pingFor(4_000, first, second);
    await scene.done(worker, first);
    expect(await scene.status(endpoint, second)).toMatchObject({ delayTime: 1, executionTime: 4_000 });
    await scene.advance(16_250);
    expect(await scene.state(endpoint, second)).toBe("TIMED_OUT");
  });

  it("has a job given back that two pings leave out while they name others", async () => {
    const [first, second] = await prefetched();
    await scene.advance(1);
    await scene.take(worker, { isBusy: true }); // the second ended without a result, which made room
    await pingFor(12_000, first);
    expect([await scene.state(endpoint, first), await scene.state(endpoint, second)]).toEqual([
      "IN_PROGRESS",
      "IN_QUEUE",
    ]);
  });

  it("has such a job given back even if it was given several at once", async () => {
    const ids = [await scene.submit(endpoint), await scene.submit(endpoint)];
    await scene.take(worker, { count: 2, holdsNothing: true });
    await pingFor(12_000, ids[0]!);
    expect(await Promise.all(ids.map((id) => scene.state(endpoint, id)))).toEqual(["IN_PROGRESS", "IN_QUEUE"]);
  });
});
