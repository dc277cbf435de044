import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../memory/registry.js";
import { updateEndpoint } from "../operations/endpoints/save-endpoint.js";
import { endWorker } from "../operations/workers/worker-life.js";
import { Scene } from "../testing/scene-fixture.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const workers = () => scene.workersOf(endpoint);

describe("A worker of an older version", () => {
  it("is replaced: at once if idle; if busy it is closed when a new one is up, and stopped after its job", async () => {
    endpoint = await scene.scaled({ workersMax: 5, workersMin: 2, idleTimeout: 600 });
    const [idler, busy] = workers() as [LiveWorker, LiveWorker];
    await updateEndpoint(scene.parts, scene.admin, endpoint, { workersMin: 0 });
    await scene.idle(idler);
    await scene.idle(busy);
    busy.busyAt++; // it is served first
    const id = await scene.running(endpoint, busy);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    await scene.advance(50);
    expect([idler.row.wanted, busy.row.wanted]).toEqual(["stopped", "running"]);
    await scene.idle(workers().find(({ row }) => row.version === 2)!);
    await scene.advance(50);
    expect(busy.row.wanted).toBe("closed");
    await scene.done(busy, id);
    await scene.advance(50);
    expect(busy.row.wanted).toBe("stopped");
  });
});

describe("A release", () => {
  const newOnes = () => workers().filter(({ row }) => row.version === 2);

  it("never leaves fewer workers than needed: an old worker is stopped once its successor is up", async () => {
    endpoint = await scene.scaled({ workersMax: 3, workersMin: 2, idleTimeout: 600 });
    const old = workers() as [LiveWorker, LiveWorker];
    for (const worker of old) await scene.idle(worker);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    await scene.advance(50);
    expect(newOnes()).toHaveLength(1); // workersMax leaves room for one
    expect(old.map(({ row }) => row.wanted)).toEqual(["running", "running"]);
    await scene.idle(newOnes()[0]!);
    await scene.advance(50);
    const [gone] = old.filter(({ row }) => row.wanted === "stopped");
    expect(gone).toBeDefined();
    await endWorker(scene.parts, gone!, { code: 0 }, "stopped");
    await scene.advance(50);
    await scene.idle(newOnes()[1]!);
    await scene.advance(50);
    expect(old.map(({ row }) => row.wanted)).toEqual(["stopped", "stopped"]);
  });

  it("stops if its workers fail three times at their start: the old workers stay, and a save resumes it", async () => {
    endpoint = await scene.scaled({ workersMax: 3, workersMin: 1, idleTimeout: 600 });
    const [old] = workers() as [LiveWorker];
    await scene.idle(old);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    for (const _ of [1, 2, 3]) {
      await scene.advance(10_000);
      await scene.crash(newOnes()[0]!);
    }
    await scene.advance(600_000);
    expect(old.row.wanted).toBe("running");
    expect(newOnes()).toEqual([]);
    const id = await scene.submit(endpoint);
    expect(await scene.take(old)).toMatchObject([{ id }]);
    await scene.done(old, id);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "2" } });
    await scene.advance(50);
    const [fresh] = workers().filter(({ row }) => row.version === 3);
    await scene.idle(fresh!);
    await scene.advance(50);
    expect(old.row.wanted).toBe("stopped");
  });

  it("keeps the old workers while all jobs run and none waits", async () => {
    endpoint = await scene.scaled({ workersMax: 5, scalerValue: 100 });
    await scene.submit(endpoint);
    await scene.advance(50);
    const [old] = workers() as [LiveWorker];
    await scene.take(old);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    await scene.advance(50);
    expect(old.row).toMatchObject({ version: 1, wanted: "running" });
  });

  it("that stopped starts the previous version again when a job comes", async () => {
    endpoint = await scene.scaled({ idleTimeout: 1, scalerType: "REQUEST_COUNT", scalerValue: 1 });
    await scene.submit(endpoint);
    await scene.advance(50);
    const [old] = workers() as [LiveWorker];
    const [job] = await scene.take(old);
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "broken" } });
    for (const _ of [1, 2, 3]) {
      await scene.advance(10_000);
      await scene.crash(newOnes()[0]!);
    }
    await scene.done(old, job!.id);
    await scene.advance(2_000);
    await endWorker(scene.parts, old, { code: 0 }, "stopped");
    await scene.submit(endpoint);
    await scene.advance(20_000);
    expect(workers().map(({ row }) => [row.version, row.wanted])).toContainEqual([1, "running"]);
  });
});
