import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { cancelJob } from "../jobs/change-job.js";
import { hearUnhealthy } from "./hear-ping.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

describe("A job that pings leave out", () => {
  it("is given back by the second ping, never by one", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.advance(5_000);
    await scene.ping(worker);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await scene.advance(4_000);
    await scene.ping(worker);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("is not judged until the reply to its take is written", async () => {
    const id = await scene.running(endpoint, worker);
    worker.unwritten.add(id);
    await scene.advance(5_000);
    await scene.ping(worker);
    await scene.advance(4_000);
    await scene.ping(worker);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
  });

  it("is not judged by pings in its first 5 s", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.advance(4_999);
    await scene.ping(worker);
    await scene.ping(worker);
    await scene.advance(1);
    await scene.ping(worker);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await scene.ping(worker);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });

  it("is safe again after a ping in between that names it", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.advance(5_000);
    await scene.ping(worker);
    await scene.ping(worker, id);
    await scene.ping(worker);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
  });

  it("does not affect the worker's other jobs", async () => {
    const lost = await scene.running(endpoint, worker);
    const kept = await scene.running(endpoint, worker);
    await scene.advance(5_000);
    await scene.ping(worker, kept);
    await scene.ping(worker, kept);
    expect([await scene.state(endpoint, lost), await scene.state(endpoint, kept)]).toEqual(["IN_QUEUE", "IN_PROGRESS"]);
  });

  it("is FAILED by the third time, saying so", async () => {
    const id = await scene.submit(endpoint);
    for (let start = 1; start <= 3; start++) {
      await scene.take(worker);
      await scene.advance(5_000);
      await scene.ping(worker);
      await scene.ping(worker);
    }
    expect(await scene.status(endpoint, id)).toMatchObject({
      status: "FAILED",
      error: "The worker finished without reporting a result (3 starts in all).",
    });
  });

  it("is judged anew after a restart: an earlier ping does not count", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.advance(5_000);
    await scene.ping(worker);
    scene = await scene.restart();
    const [again] = scene.workersOf(endpoint);
    await scene.ping(again!);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await scene.ping(again!);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });

  it("whose result came between the pings stays COMPLETED", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.advance(5_000);
    await scene.ping(worker);
    await Promise.all([scene.done(worker, id), scene.ping(worker)]);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    expect((await scene.health(endpoint)).retried).toBe(0);
  });
});

describe("A job to stop", () => {
  const unstopped = () => scene.stores.reader.unstopped();

  it("is named once, to a held poll or to a later one", async () => {
    const first = await scene.running(endpoint, worker);
    const second = await scene.running(endpoint, worker);
    const held = scene.stops(worker);
    await cancelJob(scene.parts, endpoint, first);
    await scene.settle();
    expect(held.jobs).toEqual([first]);
    await cancelJob(scene.parts, endpoint, second);
    const later = scene.stops(worker);
    await scene.settle();
    expect(later.jobs).toEqual([second]);
    const none = scene.stops(worker);
    await scene.advance(19_999);
    expect(none.jobs).toBeUndefined();
    await scene.advance(1);
    expect(none.jobs).toEqual([]);
  });

  it("is named again by a restarted server", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    expect(await toldTo(worker)).toEqual([id]);
    scene = await scene.restart();
    expect(await toldTo(scene.workersOf(endpoint)[0]!)).toEqual([id]);
  });

  it("has stopped after any report for it", async () => {
    for (const word of [{ output: 1 }, { error: "stopped" }]) {
      const id = await scene.running(endpoint, worker);
      await cancelJob(scene.parts, endpoint, id);
      expect(await unstopped()).toHaveLength(1);
      await scene.done(worker, id, word);
      expect(await unstopped()).toEqual([]);
    }
  });

  it("has stopped after one ping that leaves it out, but not after one that names it", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    await scene.ping(worker, id);
    expect(await unstopped()).toHaveLength(1);
    await scene.ping(worker);
    expect(await unstopped()).toEqual([]);
  });

  it("is not confirmed by another worker's report", async () => {
    const id = await scene.running(endpoint, worker);
    await cancelJob(scene.parts, endpoint, id);
    await scene.done(await scene.worker(endpoint), id);
    expect(await unstopped()).toHaveLength(1);
  });

  async function toldTo(each: LiveWorker) {
    const poll = scene.stops(each);
    await scene.settle();
    return poll.jobs;
  }
});

describe("A poll for jobs to stop", () => {
  it("is answered with nothing at once when its worker is dismissed", async () => {
    const poll = scene.stops(worker);
    await scene.settle();
    worker.dismissed.abort();
    await scene.settle();
    expect(poll.jobs).toEqual([]);
  });

  it("of a worker that has ended is held for its 20 s", async () => {
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
    worker.dismissed.abort();
    const poll = scene.stops(worker);
    await scene.advance(19_999);
    expect(poll.jobs).toBeUndefined();
    await scene.advance(1);
    expect(poll.jobs).toEqual([]);
  });
});

it("The reason that an unhealthy worker reports is kept as the reason of its end", async () => {
  await hearUnhealthy(scene.parts, worker, "gpu: no CUDA device");
  expect(worker.row.exit?.note).toBe("gpu: no CUDA device");
});
