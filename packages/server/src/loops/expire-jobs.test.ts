import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { limits } from "../limits/index.js";
import type { LiveWorker } from "../memory/registry.js";
import { Scene } from "../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

const policy = (more: object) => ({ input: {}, policy: more });
const expired = () =>
  scene.events.flatMap((event) => (event.type === "job.expired" ? [event.count] : [])).reduce((a, b) => a + b, 0);

describe("An expired job", () => {
  it("is deleted at its time, finished or waiting, and counted", async () => {
    scene.run(scene.loops.expire());
    const done = await scene.running(endpoint, worker, { input: {} }, { route: "runsync" });
    await scene.done(worker, done);
    await scene.submit(endpoint, policy({ ttl: 30_000 }));
    await scene.submit(endpoint);
    await scene.advance(31_100);
    expect(expired()).toBe(1);
    await scene.advance(30_000);
    expect(expired()).toBe(2);
    expect(await scene.health(endpoint)).toMatchObject({ waiting: 1, waitingNormal: 1, completed: 1 });
  });

  it("is deleted in batches, with other writes between them", async () => {
    const count = 2 * limits.sweepBatch + 1;
    await Promise.all(Array.from({ length: count }, () => scene.submit(endpoint, policy({ ttl: 10_000 }))));
    await scene.advance(10_000);
    let batches = 0;
    const listen = () => {
      batches++;
      scene.during("jobs.sweep", listen);
    };
    scene.during("jobs.sweep", listen);
    scene.run(scene.loops.expire());
    await scene.advance(2_000);
    expect(expired()).toBe(count);
    expect(batches).toBeGreaterThanOrEqual(3);
    expect(await scene.health(endpoint)).toMatchObject({ waiting: 0, waitingNormal: 0 });
  });

  it("stays hidden until its webhook was sent, and is deleted afterwards", async () => {
    scene.run(scene.loops.expire());
    const body = { input: {}, webhook: "https://example.com/" };
    const id = await scene.running(endpoint, worker, body, { route: "runsync" });
    await scene.done(worker, id);
    await scene.advance(120_000);
    expect([await scene.state(endpoint, id), expired()]).toEqual(["gone", 0]);
    scene.run(scene.loops.deliver());
    scene.sender.status = 200;
    scene.parts.bell.ring("deliveries");
    await scene.advance(5_000);
    expect([scene.sender.posts.length, expired()]).toEqual([1, 1]);
  });

  it("stays until its worker has stopped it, and is deleted afterwards", async () => {
    scene.run(scene.loops.expire());
    await scene.running(endpoint, worker, policy({ ttl: 10_000 }));
    await scene.advance(12_000);
    expect(expired()).toBe(0);
    expect(await scene.stores.reader.unstopped()).toHaveLength(1);
    await scene.ping(worker);
    await scene.advance(3_000);
    expect(expired()).toBe(1);
  });
});

describe("A running job's executionTimeout", () => {
  const timedOut = { status: "TIMED_OUT", error: expect.stringContaining("executionTimeout") };

  it("ends it in time, and its worker is told to stop it", async () => {
    scene.run(scene.loops.timeOut());
    const id = await scene.running(endpoint, worker, policy({ executionTimeout: 5_000 }));
    const stops = scene.stops(worker);
    await scene.advance(4_999);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await scene.advance(300);
    expect(await scene.status(endpoint, id)).toMatchObject(timedOut);
    expect(stops.jobs).toEqual([id]);
    await scene.done(worker, id, { output: "late" });
    expect(await scene.status(endpoint, id)).toMatchObject(timedOut);
    expect((await scene.health(endpoint)).failed).toBe(1);
  });

  it("does not count the time in the queue, and counts again from each start", async () => {
    scene.run(scene.loops.timeOut());
    const id = await scene.submit(endpoint, policy({ executionTimeout: 5_000 }));
    await scene.advance(60_000);
    await scene.take(worker);
    await scene.advance(4_000);
    await scene.take(worker, { holdsNothing: true });
    await scene.advance(4_900);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await scene.advance(500);
    expect(await scene.state(endpoint, id)).toBe("TIMED_OUT");
  });

  it("that passed while the server was down ends it soon after the start; a result on its way still counts", async () => {
    const id = await scene.running(endpoint, worker, policy({ executionTimeout: 5_000 }));
    await scene.advance(60_000);
    scene = await scene.restart();
    scene.run(scene.loops.timeOut());
    await scene.advance(4_900);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await scene.advance(200);
    expect(await scene.state(endpoint, id)).toBe("TIMED_OUT");
  });

  it("that passed while the server was suspended ends it soon afterwards; a result on its way still counts", async () => {
    scene.run(scene.loops.timeOut());
    const [early, late] = [
      await scene.running(endpoint, worker, policy({ executionTimeout: 60_000 })),
      await scene.running(endpoint, worker, policy({ executionTimeout: 60_000 })),
    ];
    await scene.advance(10_000);
    scene.clock.suspend(60_000);
    await scene.advance(limits.absentAfterMs - 100);
    await scene.done(worker, early);
    await scene.advance(200);
    expect([await scene.state(endpoint, early), await scene.state(endpoint, late)]).toEqual(["COMPLETED", "TIMED_OUT"]);
  });

  it("of many jobs at once ends all of them", async () => {
    await Promise.all(Array.from({ length: 450 }, () => scene.submit(endpoint, policy({ executionTimeout: 5_000 }))));
    await scene.take(worker, { count: 450 });
    scene.run(scene.loops.timeOut());
    await scene.advance(6_000);
    expect(await scene.health(endpoint)).toMatchObject({ running: 0, failed: 450 });
  });
});

it("With nothing to do the loops do nothing", async () => {
  scene.run(scene.loops.expire(), scene.loops.timeOut());
  await scene.submit(endpoint, policy({ ttl: 604_800_000 }));
  await scene.advance(5_000);
  const before = scene.clock.wakes;
  await scene.advance(3_600_000);
  expect(scene.clock.wakes - before).toBeLessThan(5);
});
