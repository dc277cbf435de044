import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { topics } from "../../bell.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { cancelJob, cancelWaiting, setTtl, timeOutJob } from "./change-job.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

const timeOut = async () => {
  for (const held of await scene.stores.reader.heldBy(worker.row.no)) await timeOutJob(scene.parts, held);
};

/** A job that has ended in this state. */
async function ended(status: string, body: object = { input: {} }): Promise<string> {
  const id = await scene.running(endpoint, worker, body);
  if (status === "COMPLETED") await scene.done(worker, id, { output: 1 });
  if (status === "FAILED") await scene.done(worker, id, { error: "it broke", output: "half" });
  if (status === "CANCELLED") await cancelJob(scene.parts, endpoint, id);
  if (status === "TIMED_OUT") await timeOut();
  expect(await scene.state(endpoint, id)).toBe(status);
  return id;
}

describe("Cancelling", () => {
  it("of one job need not wait for another owner's thousands", async () => {
    const other = { ...endpoint, ownerNo: endpoint.ownerNo + 1 };
    const [last = "", ...many] = await Promise.all(Array.from({ length: 101 }, () => scene.submit(endpoint)));
    const jobs = {
      ...scene.parts.jobs,
      change: async (changing: Parameters<typeof scene.parts.jobs.change>[0]) => {
        await new Promise(setImmediate); // a database that answers one after the other
        return scene.parts.jobs.change(changing);
      },
    };
    const parts = { ...scene.parts, jobs };
    let cancelled = 0;
    const cancels = many.map((id) => cancelJob(parts, endpoint, id).then(() => cancelled++));
    await cancelJob(parts, other, last);
    expect(cancelled).toBeLessThan(3 * limits.changesAtOnce);
    await Promise.all(cancels);
  });

  it("takes a waiting job out of the queue", async () => {
    const id = await scene.submit(endpoint);
    await cancelJob(scene.parts, endpoint, id);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "CANCELLED", executionTime: 0 });
    expect(await scene.status(endpoint, id)).not.toHaveProperty("error");
    expect(await scene.take(worker)).toEqual([]);
    expect(await scene.stores.reader.unstopped()).toEqual([]);
  });

  it("ends a running job at once, tells its worker, and drops the late result", async () => {
    const id = await scene.running(endpoint, worker);
    const stops = scene.stops(worker);
    await scene.settle();
    expect(stops.jobs).toBeUndefined();
    await cancelJob(scene.parts, endpoint, id);
    await scene.settle();
    expect(stops.jobs).toEqual([id]);
    await scene.done(worker, id, { output: "late" });
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "CANCELLED" });
    expect(await scene.status(endpoint, id)).not.toHaveProperty("output");
  });

  it("succeeds again if the job is CANCELLED already", async () => {
    const id = await ended("CANCELLED");
    await cancelJob(scene.parts, endpoint, id);
    expect(await scene.state(endpoint, id)).toBe("CANCELLED");
  });

  it.each(["COMPLETED", "FAILED", "TIMED_OUT"])("of a job that is %s is refused, naming the state", async (status) => {
    const id = await ended(status);
    await refused(cancelJob(scene.parts, endpoint, id), "INVALID_STATE", new RegExp(status));
    expect(await scene.state(endpoint, id)).toBe(status);
  });

  it("of an unknown job, or another endpoint's job, is refused as unknown", async () => {
    const id = await scene.submit(endpoint);
    const other = await scene.endpoint();
    await refused(cancelJob(scene.parts, endpoint, "nothing"), "JOB_NOT_FOUND");
    await refused(cancelJob(scene.parts, other, id), "JOB_NOT_FOUND");
  });

  it("at the same moment as the result has one winner", async () => {
    for (let round = 0; round < 10; round++) {
      const id = await scene.running(endpoint, worker);
      const calls = [() => scene.done(worker, id, { output: 1 }), () => cancelJob(scene.parts, endpoint, id)];
      if (round % 2) calls.reverse();
      const outcomes = await Promise.allSettled(calls.map((call) => call()));
      const { status, output } = await scene.status(endpoint, id);
      const cancelled = outcomes.filter((outcome) => outcome.status === "rejected").length === 0;
      expect([status, output]).toEqual(cancelled ? ["CANCELLED", undefined] : ["COMPLETED", 1]);
    }
    const { completed, running } = await scene.health(endpoint);
    expect(running).toBe(0);
    expect(completed).toBeLessThanOrEqual(10);
  });
});

describe("Setting a ttl", () => {
  it.each([9_999, 604_800_001, 10_000.5, Number.NaN, -1])("of %d is refused", async (ttl) => {
    const id = await scene.submit(endpoint);
    await refused(setTtl(scene.parts, endpoint, id, ttl), "INVALID_INPUT", /'ttl'.*10000 to 604800000/);
  });

  it("counts from the submission", async () => {
    const id = await scene.submit(endpoint);
    await scene.advance(15_000);
    await setTtl(scene.parts, endpoint, id, 20_000);
    await scene.advance(4_999);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
    await scene.advance(1);
    expect(await scene.state(endpoint, id)).toBe("gone");
  });

  it("lengthens a life as well", async () => {
    const id = await scene.submit(endpoint, { input: {}, policy: { ttl: 10_000 } });
    await setTtl(scene.parts, endpoint, id, 60_000);
    await scene.advance(59_999);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });

  it("that has passed already makes the job unknown", async () => {
    const id = await scene.submit(endpoint);
    await scene.advance(15_000);
    await setTtl(scene.parts, endpoint, id, 10_000);
    await refused(scene.status(endpoint, id), "JOB_NOT_FOUND");
  });

  it("that has passed already removes the job from the counts before the reply", async () => {
    const [runs, waits] = [await scene.running(endpoint, worker), await scene.submit(endpoint)];
    await scene.advance(15_000);
    let rings = 0;
    scene.parts.bell.on(topics.demand(endpoint.no), () => void rings++);
    for (const id of [runs, waits]) await setTtl(scene.parts, endpoint, id, 10_000);
    expect(await scene.health(endpoint)).toMatchObject({ waiting: 0, waitingNormal: 0, running: 0 });
    expect(rings).toBeGreaterThan(0);
  });

  it("of an unknown job is refused", async () => {
    await refused(setTtl(scene.parts, endpoint, "nothing", 10_000), "JOB_NOT_FOUND");
  });

  it("of a finished job never makes it outlive its retention", async () => {
    const id = await ended("COMPLETED");
    await setTtl(scene.parts, endpoint, id, 604_800_000);
    await scene.advance(30 * 60_000 - 1);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    await scene.advance(1);
    expect(await scene.state(endpoint, id)).toBe("gone");
  });

  it("that passes while the job runs has its worker told to stop, and the late result dropped", async () => {
    scene.run(scene.loops.expire());
    const id = await scene.running(endpoint, worker);
    const stops = scene.stops(worker);
    await scene.advance(2_000);
    await setTtl(scene.parts, endpoint, id, 10_000);
    await scene.advance(7_999);
    expect([await scene.state(endpoint, id), stops.jobs]).toEqual(["IN_PROGRESS", undefined]);
    await scene.advance(2_000);
    expect([await scene.state(endpoint, id), stops.jobs]).toEqual(["gone", [id]]);
    await scene.done(worker, id, { output: "late" });
    await scene.advance(2_000);
    expect(await scene.state(endpoint, id)).toBe("gone");
    expect(await scene.health(endpoint)).toMatchObject({ waiting: 0, running: 0, completed: 0, failed: 0 });
    expect(await scene.stores.reader.heldBy(worker.row.no)).toEqual([]);
  });
});

describe("A purge", () => {
  it("cancels waiting jobs with a reason, and leaves running jobs", async () => {
    const running = await scene.running(endpoint, worker);
    const waiting = [await scene.submit(endpoint), await scene.submit(endpoint)];
    expect(await cancelWaiting(scene.parts, endpoint.no, "The queue was purged.")).toBe(2);
    for (const id of waiting) {
      expect(await scene.status(endpoint, id)).toMatchObject({ status: "CANCELLED", error: "The queue was purged." });
    }
    expect(await scene.state(endpoint, running)).toBe("IN_PROGRESS");
  });

  it("works in batches, counts all of them, and leaves jobs that came after it", async () => {
    await Promise.all(Array.from({ length: 1_203 }, () => scene.submit(endpoint)));
    const purge = cancelWaiting(scene.parts, endpoint.no, "purged");
    const later = scene.submit(endpoint);
    expect(await purge).toBe(1_203);
    expect(await scene.state(endpoint, await later)).toBe("IN_QUEUE");
    expect(await scene.health(endpoint)).toMatchObject({ waiting: 1, waitingNormal: 1 });
  });

  it("leaves other endpoints alone", async () => {
    const other = await scene.endpoint();
    const id = await scene.submit(other);
    expect(await cancelWaiting(scene.parts, endpoint.no, "purged")).toBe(0);
    expect(await scene.state(other, id)).toBe("IN_QUEUE");
  });
});

it("Many purges write one batch at a time, and owners take turns", async () => {
  const endpoints = [await scene.endpoint(), await scene.endpoint(), await scene.endpoint()];
  for (const endpoint of endpoints) for (let n = 0; n < 3; n++) await scene.submit(endpoint);
  const { cancelWaiting: cancel } = scene.parts.jobs;
  let atOnce = 0;
  let most = 0;
  const jobs = Object.create(scene.parts.jobs) as typeof scene.parts.jobs;
  jobs.cancelWaiting = async (purge) => {
    most = Math.max(most, ++atOnce);
    const cancelled = await cancel(purge);
    atOnce--;
    return cancelled;
  };
  const purges = endpoints.flatMap(({ no }) =>
    [1, 2, 3].map(() => cancelWaiting({ ...scene.parts, jobs }, no, "purged")),
  );
  expect((await Promise.all(purges)).reduce((sum, count) => sum + count, 0)).toBe(9);
  expect(most).toBe(1);
});
