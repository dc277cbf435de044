import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { plainHost } from "../../testing/facts-fixture.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { readHealth } from "../endpoints/read-health.js";
import { deleteEndpoint } from "../endpoints/save-endpoint.js";
import { cancelJob, cancelWaiting, setTtl } from "./change-job.js";
import { awaitJob, describeJob } from "./read-job.js";
import { retryJob } from "./retry-job.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

/** A client that waits for a job's end. */
function waiting(jobId: string, waitMs: number, gone = scene.stays) {
  const wait = { body: undefined as Record<string, unknown> | undefined, refusal: undefined as unknown };
  awaitJob(scene.parts, endpoint, jobId, waitMs, gone).then(
    async (job) => {
      wait.body = JSON.parse(await describeJob(scene.parts, scene.asked(endpoint), job));
    },
    (refusal) => {
      wait.refusal = refusal;
    },
  );
  return wait;
}

describe("Waiting for a job", () => {
  it("ends with the full result the moment there is one", async () => {
    const worker = await scene.worker(endpoint);
    const id = await scene.submit(endpoint);
    const wait = waiting(id, 90_000);
    await scene.advance(2_000);
    await scene.take(worker);
    await scene.advance(3_000);
    expect(wait.body).toBeUndefined();
    await scene.done(worker, id, { output: 1 });
    await scene.settle();
    expect(wait.body).toMatchObject({ status: "COMPLETED", output: 1, delayTime: 2_000, executionTime: 3_000 });
  });

  it("ends with the present state when its time has passed, and the job goes on", async () => {
    const id = await scene.submit(endpoint);
    const wait = waiting(id, 5_000);
    await scene.advance(4_999);
    expect(wait.body).toBeUndefined();
    await scene.advance(1);
    expect(wait.body).toMatchObject({ status: "IN_QUEUE", delayTime: 5_000 });
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });

  it("ends with the reason at its end, not at its beginning", async () => {
    const wait = waiting(await scene.submit(endpoint), 5_000);
    await scene.advance(4_000);
    const said = { failedStarts: limits.crashLoopStarts, at: scene.clock.now(), verdict: "boom" };
    await scene.parts.registry.noteStart(scene.now(endpoint), endpoint.version, said);
    await scene.advance(1_000);
    expect(wait.body).toMatchObject({ waitReason: "crash_looping", waitDetail: expect.stringContaining("boom") });
  });

  it("ends with what keeps the worker busy if it has not stopped a cancelled job", async () => {
    endpoint = await scene.endpoint({ workersMax: 1 });
    const worker = await scene.worker(endpoint);
    await cancelJob(scene.parts, endpoint, await scene.running(endpoint, worker));
    const wait = waiting(await scene.submit(endpoint), 1_000);
    await scene.advance(1_000);
    const waitDetail = expect.stringContaining("1 of them still runs a handler whose job was stopped");
    expect(wait.body).toMatchObject({ status: "IN_QUEUE", waitReason: "workers_max_reached", waitDetail });
  });

  it("ends with one complete reply if the job ends in that very millisecond", async () => {
    const worker = await scene.worker(endpoint);
    const id = await scene.running(endpoint, worker);
    const wait = waiting(id, 5_000);
    await scene.advance(4_999);
    const done = scene.done(worker, id, { output: "just" });
    await Promise.all([done, scene.advance(1)]);
    expect(wait.body?.status).toMatch(/^(COMPLETED|IN_PROGRESS)$/);
    if (wait.body?.status === "COMPLETED") expect(wait.body.output).toBe("just");
  });

  it("is answered by a cancel, a purge and the deletion of the endpoint", async () => {
    const ids = [await scene.submit(endpoint), await scene.submit(endpoint)];
    const waits = ids.map((id) => waiting(id, 90_000));
    await cancelJob(scene.parts, endpoint, ids[0]!);
    await cancelWaiting(scene.parts, endpoint.no, "The queue was purged.");
    const last = waiting(await scene.submit(endpoint), 90_000);
    await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
    await scene.settle();
    expect(waits.map(({ body }) => [body?.status, body?.error])).toEqual([
      ["CANCELLED", undefined],
      ["CANCELLED", "The queue was purged."],
    ]);
    expect(last.body).toMatchObject({ status: "CANCELLED", error: expect.stringContaining("endpoint deleted") });
  });

  it("is refused at once when the job is given a ttl that has passed, and in time by a shorter one", async () => {
    const [over, short] = [await scene.submit(endpoint), await scene.submit(endpoint)];
    const waits = [waiting(over, 90_000), waiting(short, 90_000)];
    await scene.advance(20_000);
    await setTtl(scene.parts, endpoint, over, 10_000).catch(() => {});
    await setTtl(scene.parts, endpoint, short, 30_000);
    await scene.settle();
    expect(waits.map(({ refusal }) => refusal !== undefined)).toEqual([true, false]);
    await scene.advance(10_000);
    expect(waits.map(({ refusal }) => refusal !== undefined)).toEqual([true, true]);
  });

  it("is refused as for an unknown job when the ttl passes meanwhile", async () => {
    scene.run(scene.loops.expire());
    const wait = waiting(await scene.submit(endpoint, { input: {}, policy: { ttl: 10_000 } }), 90_000);
    await scene.advance(12_000);
    expect(wait.refusal).toMatchObject({ code: "JOB_NOT_FOUND" });
  });

  it("survives a give-back and a retry, and ends with the last run", async () => {
    const worker = await scene.worker(endpoint);
    const id = await scene.running(endpoint, worker);
    const wait = waiting(id, 90_000);
    await scene.advance(1_000);
    await scene.take(worker, { holdsNothing: true });
    await scene.advance(1_000);
    expect(wait.body).toBeUndefined();
    await scene.done(worker, id, { error: "no" });
    await scene.settle();
    expect(wait.body).toMatchObject({ status: "FAILED", retries: 1 });
    await retryJob(scene.parts, endpoint, id);
    const again = waiting(id, 90_000);
    await scene.take(worker);
    await scene.done(worker, id, { output: 2 });
    await scene.settle();
    expect(again.body).toMatchObject({ status: "COMPLETED", output: 2 });
  });

  it("ends at once when the client is gone, and leaves nothing behind", async () => {
    const client = new AbortController();
    const id = await scene.submit(endpoint);
    const wait = waiting(id, 90_000, client.signal);
    await scene.settle();
    expect(scene.clock.sleeping).toBe(1);
    client.abort();
    await scene.settle();
    expect(wait.body).toMatchObject({ status: "IN_QUEUE" });
    expect(scene.clock.sleeping).toBe(0);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
  });

  it("ends with the present state when the server stops", async () => {
    const wait = waiting(await scene.submit(endpoint), 90_000);
    await scene.settle();
    scene.draining.abort();
    await scene.settle();
    expect(wait.body).toMatchObject({ status: "IN_QUEUE" });
  });
});

describe("Why a job waits", () => {
  const why = async (id: string) => {
    const { waitReason, waitDetail } = await scene.status(endpoint, id);
    expect(waitDetail).toMatch(/\S/);
    return waitReason;
  };

  it("is shown only while it waits", async () => {
    const id = await scene.submit(endpoint);
    expect(await why(id)).toBe("no_worker");
    const worker = await scene.worker(endpoint);
    expect(await why(id)).toBe("starting");
    await scene.take(worker);
    const body = await scene.status(endpoint, id);
    for (const name of ["waitReason", "waitDetail", "queuePosition"]) expect(body).not.toHaveProperty(name);
    expect(await why(await scene.submit(endpoint))).toBe("workers_busy");
  });

  it("is the location if no host is in it", async () => {
    await scene.close();
    scene = await Scene.open({ here: { facts: () => ({ ...plainHost, location: "CZ" }) } });
    endpoint = await scene.endpoint({ locations: "FR,US" });
    expect(await why(await scene.submit(endpoint))).toBe("location");
    endpoint = await scene.endpoint({ locations: "US,CZ" });
    expect(await why(await scene.submit(endpoint))).toBe("no_worker");
  });

  it("is workersMax if that is 0, and lowPriority if nothing else holds it up", async () => {
    const low = await scene.submit(endpoint, { input: {}, policy: { lowPriority: true } });
    expect(await why(low)).toBe("low_priority");
    endpoint = await scene.endpoint({ workersMax: 0 });
    expect(await why(await scene.submit(endpoint))).toBe("workers_max_zero");
  });
});

describe("Health", () => {
  const health = () => readHealth(scene.parts, scene.now(endpoint));

  it("counts nothing at first", async () => {
    expect(await health()).toEqual({
      jobs: { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 },
      workers: { idle: 0, running: 0, initializing: 0, ready: 0, throttled: 0, unhealthy: 0, paused: 0 },
    });
  });

  it("counts jobs since the endpoint was made, and workers as they are", async () => {
    const [busy, idle] = [await scene.worker(endpoint), await scene.worker(endpoint), await scene.worker(endpoint)];
    await scene.take(idle);
    await scene.done(busy, await scene.running(endpoint, busy));
    await scene.done(busy, await scene.running(endpoint, busy), { error: "no" });
    await scene.running(endpoint, busy);
    await scene.advance(1);
    await scene.take(busy, { holdsNothing: true });
    await scene.submit(endpoint);
    expect(await health()).toEqual({
      jobs: { completed: 1, failed: 1, inProgress: 1, inQueue: 1, retried: 1 },
      workers: { idle: 1, running: 1, initializing: 1, ready: 2, throttled: 0, unhealthy: 0, paused: 0 },
    });
  });
});

it("An unknown job is refused, naming its id, truncated", async () => {
  await refused(scene.status(endpoint, "x".repeat(500)), "JOB_NOT_FOUND", /^There is no job 'x{80}…' here/);
});
