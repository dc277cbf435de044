import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { deleteEndpoint } from "../endpoints/save-endpoint.js";
import { closeWorker } from "../workers/worker-life.js";
import { cancelJob } from "./change-job.js";
import { returnJobs, takeJobs } from "./take-jobs.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

const lostMessage = "The worker finished without reporting a result (3 starts in all).";

describe("A take", () => {
  it("is given the oldest job at once, and marks its worker as ready", async () => {
    expect(worker.row.readyAt).toBeUndefined();
    const first = await scene.submit(endpoint);
    await scene.submit(endpoint);
    await scene.advance(3_000);
    expect((await scene.take(worker)).map(({ id }) => id)).toEqual([first]);
    expect(worker.row.readyAt).toBe(scene.clock.now());
    await scene.advance(2_000);
    expect(await scene.status(endpoint, first)).toMatchObject({
      status: "IN_PROGRESS",
      delayTime: 3_000,
      executionTime: 2_000,
      workerId: worker.row.id,
    });
  });

  it("gets no more jobs than a worker may hold, until it has reported some", async () => {
    await Promise.all(Array.from({ length: limits.heldJobsMax + 10 }, () => scene.submit(endpoint)));
    const taken = [];
    for (let n = 0; n < limits.heldJobsMax; n += limits.takeBatchMax)
      taken.push(...(await scene.take(worker, { count: limits.takeBatchMax })));
    expect(taken).toHaveLength(limits.heldJobsMax);
    const held = scene.take(worker, { count: limits.takeBatchMax });
    await scene.advance(limits.takeHoldMs);
    expect(await held).toEqual([]);
    await returnJobs(scene.parts, worker, taken.slice(0, 3));
    expect(await scene.take(worker, { count: limits.takeBatchMax })).toHaveLength(3);
  });

  it("is held while nothing waits, and answered by the next submission", async () => {
    const poll = scene.poll(worker);
    await scene.advance(19_000);
    expect(poll.jobs).toBeUndefined();
    const id = await scene.submit(endpoint);
    await scene.settle();
    expect(poll.jobs).toMatchObject([{ id, starts: 1 }]);
  });

  it("is answered with nothing after 20 s", async () => {
    const poll = scene.poll(worker);
    await scene.advance(19_999);
    expect(poll.jobs).toBeUndefined();
    await scene.advance(1);
    expect(poll.jobs).toEqual([]);
  });

  it("of a batch is given up to that many, in their order", async () => {
    const ids = [await scene.submit(endpoint), await scene.submit(endpoint), await scene.submit(endpoint)];
    expect((await scene.take(worker, { count: 2 })).map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect((await scene.take(worker, { count: 2 })).map(({ id }) => id)).toEqual(ids.slice(2));
  });

  it("of several workers at the same moment gives each job to one of them only", async () => {
    const workers = await Promise.all(Array.from({ length: 5 }, () => scene.worker(endpoint)));
    const ids = await Promise.all(Array.from({ length: 12 }, () => scene.submit(endpoint)));
    const taken = await Promise.all(workers.map((each) => scene.take(each, { count: 3 })));
    expect(
      taken
        .flat()
        .map(({ id }) => id)
        .sort(),
    ).toEqual([...ids].sort());
  });

  it("replaces the worker's earlier poll", async () => {
    const first = scene.poll(worker);
    await scene.settle();
    const second = scene.poll(worker);
    await scene.settle();
    expect(first.jobs).toEqual([]);
    const id = await scene.submit(endpoint);
    await scene.settle();
    expect(second.jobs).toMatchObject([{ id }]);
  });

  it("of the most recently busy worker is served first, so that the others can stop", async () => {
    const busy = await scene.worker(endpoint);
    await scene.take(worker);
    await scene.advance(1_000);
    await scene.done(busy, await scene.running(endpoint, busy));
    const polls = [scene.poll(worker), scene.poll(busy)];
    await scene.settle();
    await scene.submit(endpoint);
    await scene.settle();
    expect(polls.map(({ jobs }) => jobs?.length)).toEqual([undefined, 1]);
  });

  it("finds no job of another endpoint, no cancelled job and no expired job", async () => {
    await scene.submit(await scene.endpoint());
    await cancelJob(scene.parts, endpoint, await scene.submit(endpoint));
    await scene.submit(endpoint, { input: {}, policy: { ttl: 10_000 } });
    await scene.advance(10_000);
    expect(await scene.take(worker)).toEqual([]);
  });

  it("of a closed worker is held and given nothing, even if it was open already", async () => {
    const standing = scene.poll(worker);
    await scene.settle();
    await closeWorker(scene.parts, worker, "a test");
    const id = await scene.submit(endpoint);
    await scene.advance(19_999);
    expect(standing.jobs).toBeUndefined();
    await scene.advance(1);
    expect(standing.jobs).toEqual([]);
    const later = scene.poll(worker);
    await scene.advance(19_999);
    expect(later.jobs).toBeUndefined();
    await scene.advance(1);
    expect(later.jobs).toEqual([]);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });

  it("of a worker that has ended is held, and given nothing", async () => {
    await scene.take(worker);
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
    worker.dismissed.abort();
    await scene.submit(endpoint);
    const poll = scene.poll(worker);
    await scene.advance(19_999);
    expect(poll.jobs).toBeUndefined();
    await scene.advance(1);
    expect(poll.jobs).toEqual([]);
  });

  it("of a dismissed worker is answered with nothing at once", async () => {
    const poll = scene.poll(worker);
    await scene.settle();
    worker.dismissed.abort();
    await scene.settle();
    expect(poll.jobs).toEqual([]);
    const next = scene.poll(worker);
    await scene.settle();
    expect(next.jobs).toEqual([]);
  });

  it("at a deleted endpoint is given nothing", async () => {
    const poll = scene.poll(worker);
    await scene.settle();
    await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
    await scene.settle();
    expect(poll.jobs).toBeUndefined();
  });
});

describe("A take whose worker reports no jobs", () => {
  it("has the jobs that counted as its worker's given back, to the front of the queue", async () => {
    const lost = await scene.running(endpoint, worker);
    const later = await scene.submit(endpoint);
    await scene.advance(1_000);
    expect((await scene.take(worker, { count: 2, holdsNothing: true })).map(({ id }) => id)).toEqual([lost, later]);
    expect(await scene.status(endpoint, lost)).toMatchObject({ status: "IN_PROGRESS", retries: 1 });
    expect((await scene.health(endpoint)).retried).toBe(1);
  });

  it("fails a job with the third lost result, saying so", async () => {
    const id = await scene.submit(endpoint);
    for (let start = 1; start <= 3; start++) {
      expect(await scene.take(worker, { holdsNothing: true })).toMatchObject([{ id, starts: start }]);
      await scene.advance(1_000);
    }
    expect(await scene.take(worker, { holdsNothing: true })).toEqual([]);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "FAILED", error: lostMessage, retries: 2 });
  });

  it("does not get its worker replaced for a job that it has lost three times", async () => {
    scene.run(scene.loops.watch());
    const id = await scene.submit(endpoint);
    for (let start = 1; start <= 3; start++) {
      await scene.take(worker, { holdsNothing: true });
      await scene.advance(1_000);
    }
    const poll = scene.poll(worker, { holdsNothing: true });
    await scene.advance(6_000);
    await scene.ping(await scene.worker(endpoint)); // something else about workers has changed
    await scene.advance(1_000);
    expect(await scene.state(endpoint, id)).toBe("FAILED");
    expect(poll.jobs).toBeUndefined();
    expect(worker.row.wanted).toBe("running");
  });

  it("clears the progress and the chunks of the lost start", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.done(worker, id, { status: "IN_PROGRESS", output: "half" });
    await scene.chunk(worker, id, { output: 1 });
    await scene.advance(1_000);
    await scene.take(worker, { holdsNothing: true });
    const body = await scene.status(endpoint, id);
    expect(body).toMatchObject({ status: "IN_PROGRESS" });
    expect(body).not.toHaveProperty("output");
    const { no } = (await scene.stores.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() }))!;
    expect(await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 1_000 })).toEqual([]);
  });

  it("proves nothing about jobs whose reply is still in flight", async () => {
    const id = await scene.submit(endpoint);
    const asked = { worker, count: 1, holdsNothing: true, gone: scene.stays };
    expect(await takeJobs(scene.parts, asked)).toHaveLength(1);
    await scene.advance(1_000);
    expect(await scene.take(worker, { holdsNothing: true })).toEqual([]);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
  });

  it("proves nothing about jobs that an older poll of its worker is about to bring", async () => {
    const line = scene.parts.line(endpoint.no);
    const stand = line.stand.bind(line);
    let bring = () => {};
    const brought = new Promise<void>((resolve) => (bring = resolve));
    vi.spyOn(line, "stand").mockImplementationOnce((...asked) => {
      const { jobs, leave } = stand(...asked);
      return { jobs: jobs.then((found) => brought.then(() => found)), leave };
    });
    const id = await scene.submit(endpoint);
    const older = scene.poll(worker);
    await scene.settle();
    await scene.advance(1_000);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    scene.poll(worker, { holdsNothing: true });
    await scene.settle();
    bring();
    await scene.settle();
    expect(older.jobs).toMatchObject([{ id }]);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_PROGRESS", retries: 0 });
  });

  it("confirms that a cancelled job has stopped", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    await scene.advance(1);
    await scene.take(worker, { holdsNothing: true });
    expect(await scene.stores.reader.unstopped()).toEqual([]);
  });

  it("proves nothing if its worker does not report that", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.advance(60_000);
    await scene.take(worker);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
  });
});
