import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { cancelJob, timeOutJob } from "./change-job.js";
import { retryJob } from "./retry-job.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

/** A job that has ended in this state. */
async function ended(status: string, body: object = { input: {} }): Promise<string> {
  const id = await scene.running(endpoint, worker, body);
  if (status === "COMPLETED") await scene.done(worker, id, { output: 1 });
  if (status === "FAILED") await scene.done(worker, id, { error: "it broke", output: "half" });
  if (status === "CANCELLED") await cancelJob(scene.parts, endpoint, id);
  if (status === "TIMED_OUT") {
    for (const held of await scene.stores.reader.heldBy(worker.row.no)) await timeOutJob(scene.parts, held);
  }
  expect(await scene.state(endpoint, id)).toBe(status);
  return id;
}

describe("Retrying", () => {
  it.each(["FAILED", "TIMED_OUT"])(
    "puts a %s job at the back of the queue, without anything from the run before",
    async (status) => {
      const id = await ended(status, {
        input: { keep: "me" },
        webhook: "https://example.com/",
        policy: { ttl: 60_000 },
      });
      await scene.advance(5_000);
      const earlier = await scene.submit(endpoint);
      await retryJob(scene.parts, endpoint, id);
      const body = await scene.status(endpoint, id);
      expect(body).toMatchObject({ id, status: "IN_QUEUE", delayTime: 0, executionTime: 0, retries: 0 });
      expect(body).not.toHaveProperty("output");
      expect(body).not.toHaveProperty("error");
      const [first, again] = await scene.take(await scene.worker(endpoint), { count: 2 });
      expect(first!.id).toBe(earlier);
      expect(again).toMatchObject({ id, starts: 1, input: '{"keep":"me"}', webhook: "https://example.com/" });
      expect(again!.policy).toBe('{"ttl":60000}');
    },
  );

  it("is refused while as many jobs wait as its user may have", async () => {
    const id = await ended("FAILED");
    await scene.quotas({ queuedJobs: 1 });
    const waiting = await scene.submit(endpoint);
    await refused(retryJob(scene.parts, endpoint, id), "QUEUE_FULL");
    expect(await scene.state(endpoint, id)).toBe("FAILED");
    await cancelJob(scene.parts, endpoint, waiting);
    await scene.advance(1_000);
    await retryJob(scene.parts, endpoint, id);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });

  it("clears the chunks", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.chunk(worker, id, { output: 1 });
    await scene.done(worker, id, { error: "no" });
    const { no } = (await scene.stores.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() }))!;
    await retryJob(scene.parts, endpoint, id);
    expect(await scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 1_000 })).toEqual([]);
  });

  it("counts the ttl from the first submission, and retention from the new end", async () => {
    const id = await ended("FAILED", { input: {}, policy: { ttl: 3_600_000 } });
    await scene.advance(20 * 60_000);
    await retryJob(scene.parts, endpoint, id);
    await scene.take(worker);
    await scene.done(worker, id);
    await scene.advance(29 * 60_000);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    await scene.advance(60_000);
    expect(await scene.state(endpoint, id)).toBe("gone");
  });

  it("gives the job three more starts", async () => {
    const id = await ended("FAILED");
    await retryJob(scene.parts, endpoint, id);
    for (let start = 1; start <= 3; start++) {
      expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
      expect(await scene.take(worker)).toHaveLength(1);
      await scene.advance(5_000);
      await scene.ping(worker);
      await scene.ping(worker);
    }
    expect(await scene.state(endpoint, id)).toBe("FAILED");
  });

  it("sends the webhook again, with a new id", async () => {
    const id = await ended("FAILED", { input: {}, webhook: "https://example.com/" });
    await retryJob(scene.parts, endpoint, id);
    await scene.take(worker);
    await scene.done(worker, id);
    const deliveries = await scene.stores.deliveries.list({ endpointNos: [endpoint.no], jobId: id, limit: 10 });
    expect(deliveries).toHaveLength(2);
    expect(new Set(deliveries.map(({ webhookId }) => webhookId)).size).toBe(2);
    expect(deliveries.filter(({ state }) => state === "pending")).toHaveLength(1);
  });

  it("tells the worker to stop even if it must stop the same job a second time", async () => {
    const id = await ended("TIMED_OUT");
    const first = scene.stops(worker);
    await scene.settle();
    expect(first.jobs).toEqual([id]);
    await scene.ping(worker);
    await retryJob(scene.parts, endpoint, id);
    expect(await scene.take(worker)).toHaveLength(1);
    await scene.advance(1_000);
    const second = scene.stops(worker);
    await cancelJob(scene.parts, endpoint, id);
    await scene.settle();
    expect(second.jobs).toEqual([id]);
  });

  it("replaces a worker that has not stopped the earlier run, whose result could pass for the new run's", async () => {
    const id = await ended("TIMED_OUT");
    await retryJob(scene.parts, endpoint, id);
    expect(worker.row.wanted).toBe("stopped");
    expect(await scene.take(worker)).toEqual([]);
    const other = await scene.worker(endpoint);
    expect(await scene.take(other)).toMatchObject([{ id }]);
    await scene.done(worker, id, { output: "of the earlier run" });
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_PROGRESS", workerId: other.row.id });
  });

  it("leaves a worker alone that has stopped the earlier run", async () => {
    const id = await ended("TIMED_OUT");
    await scene.ping(worker);
    await retryJob(scene.parts, endpoint, id);
    expect(worker.row.wanted).toBe("running");
    expect(await scene.take(worker)).toMatchObject([{ id }]);
  });

  it.each(["COMPLETED", "CANCELLED"])("of a job that is %s is refused, naming the state", async (status) => {
    const id = await ended(status);
    await refused(retryJob(scene.parts, endpoint, id), "INVALID_STATE", new RegExp(status));
  });

  it("of a job that waits or runs is refused", async () => {
    const running = await scene.running(endpoint, worker);
    const waiting = await scene.submit(endpoint);
    await refused(retryJob(scene.parts, endpoint, running), "INVALID_STATE", /IN_PROGRESS/);
    await refused(retryJob(scene.parts, endpoint, waiting), "INVALID_STATE", /IN_QUEUE/);
  });

  it("of a job whose retention has passed is refused as unknown", async () => {
    const id = await ended("FAILED");
    await scene.advance(30 * 60_000);
    await refused(retryJob(scene.parts, endpoint, id), "JOB_NOT_FOUND");
  });

  it("twice at the same moment queues it once", async () => {
    const id = await ended("FAILED");
    const calls = [retryJob(scene.parts, endpoint, id), retryJob(scene.parts, endpoint, id)];
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(["fulfilled", "rejected"]);
    expect((await scene.health(endpoint)).waiting).toBe(1);
  });
});
