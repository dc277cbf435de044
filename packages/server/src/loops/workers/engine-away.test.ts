import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { endWorker } from "../../operations/workers/worker-life.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint({ workersMax: 1 });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await scene.close();
});

const away = new Error("no container engine answers");
const isAway = (...verbs: ("look" | "kill")[]) => {
  for (const verb of verbs) vi.spyOn(scene.provider, verb).mockRejectedValue(away);
};

/** A worker that holds a job, and is silent from now on. */
async function silent(): Promise<{ worker: LiveWorker; id: string }> {
  await scene.runAll();
  const id = await scene.submit(endpoint);
  await scene.advance(50);
  const worker = scene.workersOf(endpoint)[0] as LiveWorker;
  expect(await scene.take(worker)).toMatchObject([{ id }]);
  await scene.ping(worker, id);
  return { worker, id };
}

describe("The job of a worker that falls silent while its engine is away", () => {
  it("is given back nevertheless, and its late result is dropped", async () => {
    const { worker, id } = await silent();
    isAway("look", "kill");
    await scene.advance(34_000);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
    await scene.done(worker, id);
    expect(await scene.state(endpoint, id)).toBe("IN_QUEUE");
    expect(await scene.take(worker)).toEqual([]);
  });

  it("is given back if the engine hangs", async () => {
    const { id } = await silent();
    const hangs = () => scene.clock.sleep(20_000, scene.stays).then(() => Promise.reject(away));
    vi.spyOn(scene.provider, "kill").mockImplementation(hangs);
    await scene.advance(34_000);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
    await scene.advance(60_000);
  });

  it("is given back if the engine accepts the kill but never reports the end", async () => {
    const { id } = await silent();
    scene.provider.killEnds = false;
    await scene.advance(40_000);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("is given back by the next server, too", async () => {
    const { id } = await silent();
    isAway("look", "kill");
    scene = await scene.restart();
    await scene.runAll();
    await scene.advance(37_000);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "IN_QUEUE", retries: 1 });
  });

  it("goes to another worker when the engine is back", async () => {
    const { worker, id } = await silent();
    isAway("look", "kill");
    await scene.advance(34_000);
    vi.restoreAllMocks();
    await scene.advance(10_000);
    expect(worker.row.endedAt).toBeDefined();
    const [next] = scene.workersOf(endpoint);
    expect(await scene.take(next!)).toMatchObject([{ id }]);
  });
});

describe("An engine that hangs", () => {
  it("delays only its own workers: a worker elsewhere wakes in time", async () => {
    const flash = await scene.endpoint({ flashboot: true, idleTimeout: 5, workersMax: 1 });
    await scene.runAll();
    const first = await scene.submit(flash);
    await scene.advance(50);
    const paused = scene.workersOf(flash)[0] as LiveWorker;
    await scene.take(paused);
    await scene.done(paused, first);
    await scene.ping(paused);
    await scene.advance(5_500);
    expect(paused.row.wanted).toBe("paused");
    const stuck = await scene.worker(endpoint);
    const hangs = () => scene.clock.sleep(20_000, scene.stays).then(() => Promise.reject(away));
    vi.spyOn(scene.provider, "look").mockImplementation(hangs);
    await scene.parts.registry.changeWorker(stuck, { ...workerChanges.kill, killAt: scene.clock.now() });
    scene.parts.bell.ring("workers");
    await scene.advance(300);
    const second = await scene.submit(flash);
    await scene.advance(300);
    expect(scene.provider.isPaused(paused.row.id)).toBe(false);
    expect(await scene.take(paused)).toMatchObject([{ id: second }]);
    await scene.advance(60_000);
  });
});

it("An ended worker on a host whose engine is away does not keep other workers there from starting", async () => {
  Object.defineProperty(scene.parts.registry, "isShared", { get: () => true });
  const stray = await scene.worker(endpoint);
  await endWorker(scene.parts, stray, { note: "away" }, "it could not be started");
  const { look } = scene.provider;
  vi.spyOn(scene.provider, "look").mockImplementation((id) =>
    id === stray.row.id ? Promise.reject(away) : look.call(scene.provider, id),
  );
  scene.run(scene.loops.tend(), scene.loops.scale());
  await scene.submit(endpoint);
  await scene.advance(5_000);
  expect(scene.provider.launches).toHaveLength(1);
});

it("Ended workers on a host whose engine is away are asked for every few seconds, however often workers change", async () => {
  Object.defineProperty(scene.parts.registry, "isShared", { get: () => true });
  for (let n = 0; n < 20; n++)
    await endWorker(scene.parts, await scene.worker(endpoint), { note: "away" }, "it could not be started");
  const look = vi.spyOn(scene.provider, "look").mockRejectedValue(away);
  scene.run(scene.loops.tend());
  for (let n = 0; n < 40; n++) {
    scene.parts.bell.ring("workers");
    await scene.advance(100);
  }
  expect(look).toHaveBeenCalledTimes(limits.straysAtOnce);
  await scene.advance(8_000);
  expect(new Set(look.mock.calls.map(([id]) => id)).size).toBe(20);
  vi.restoreAllMocks();
  const asked = vi.spyOn(scene.provider, "look");
  await scene.advance(20_000);
  expect(asked).toHaveBeenCalledTimes(20);
});
