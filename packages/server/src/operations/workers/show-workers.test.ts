import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { updateEndpoint } from "../endpoints/save-endpoint.js";
import { cancelJob } from "../jobs/change-job.js";
import { hearPing } from "./hear-ping.js";
import { showColdStarts, showWorker, showWorkers } from "./show-workers.js";
import { closeWorker } from "./worker-life.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint({ workersMin: 1, idleTimeout: 600 });
  await scene.runAll();
  await scene.advance(50);
});
afterEach(() => scene.close());

const worker = (): LiveWorker => scene.workersOf(endpoint)[0] as LiveWorker;
const shown = async () => (await showWorkers(scene.parts, scene.admin, scene.now(endpoint)))[0]!;
const iso = (ms: number) => new Date(ms).toISOString();

describe("A worker is shown", () => {
  it("as initializing since it was requested", async () => {
    expect(await shown()).toMatchObject({ state: "initializing", since: iso(worker().row.createdAt), jobs: 0 });
  });

  it("as idle since its last job, and running since it took one", async () => {
    await scene.advance(1_000);
    await scene.take(worker());
    const readyAt = scene.clock.now();
    expect(await shown()).toMatchObject({ state: "idle", since: iso(readyAt) });
    await scene.advance(2_000);
    const id = await scene.running(endpoint, worker());
    expect(await shown()).toMatchObject({ state: "running", jobs: 1, since: iso(scene.clock.now()) });
    await scene.advance(2_000);
    await scene.done(worker(), id);
    expect(await shown()).toMatchObject({ state: "idle", since: iso(scene.clock.now()) });
  });

  it("as running, with the reason, while its handler goes on with a cancelled job", async () => {
    const id = await scene.running(endpoint, worker());
    await cancelJob(scene.parts, endpoint, id);
    const why = "its handler still runs a job that was stopped";
    expect(await shown()).toMatchObject({ state: "running", jobs: 0, why });
    expect(await showWorker(scene.parts, scene.admin, worker().row.id)).toMatchObject({ state: "running", why });
    await hearPing(scene.parts, worker(), new Set());
    expect(await shown()).toMatchObject({ state: "idle" });
  });

  it("as closing, with the reason, while it finishes its jobs", async () => {
    await scene.running(endpoint, worker());
    await closeWorker(scene.parts, worker(), "it asked for a fresh worker after this job");
    expect(await shown()).toMatchObject({ state: "closing", why: "it asked for a fresh worker after this job" });
  });

  it("as outdated if a new version replaces it", async () => {
    await scene.take(worker());
    const { id } = worker().row;
    await updateEndpoint(scene.parts, scene.admin, endpoint, { env: { A: "1" } });
    const view = await showWorker(scene.parts, scene.admin, id);
    expect(view).toMatchObject({ state: "outdated", why: expect.stringContaining("version 2 replaces it") });
  });

  it("as unhealthy if something is wrong with it", async () => {
    const at = scene.clock.now();
    await scene.parts.registry.changeWorker(worker(), { by: "unhealthy", trouble: { at, why: "its GPU is gone" } });
    expect(await shown()).toMatchObject({ state: "unhealthy", since: iso(at), why: "its GPU is gone" });
    await scene.parts.registry.changeWorker(worker(), { by: "healthy", trouble: undefined });
    expect(await shown()).toMatchObject({ state: "initializing" });
  });

  it("with its timeline, and after its end too, with how it ended", async () => {
    await scene.advance(1_000);
    const ended = worker();
    const id = await scene.running(endpoint, ended);
    await scene.advance(500);
    await scene.done(ended, id);
    scene.provider.end(ended.row.id, { code: 3 });
    await scene.advance(50);
    const view = await showWorker(scene.parts, scene.admin, ended.row.id);
    expect(view).toMatchObject({ state: "ended", desiredStatus: "EXITED", exit: { code: 3 } });
    expect(view.timeline.map(({ phase }) => phase)).toEqual([
      "asked for",
      "process started",
      "first take",
      "first output",
      "ended",
    ]);
    expect(view.coldStart).toMatchObject({ readyMs: expect.any(Number), totalMs: expect.any(Number), outputMs: 500 });
    const all = await showWorkers(scene.parts, scene.admin, endpoint, { ended: true });
    expect(all.map(({ state }) => state)).toEqual(["initializing", "ended"]);
    expect(await showWorkers(scene.parts, scene.admin, endpoint)).toHaveLength(1);
  });

  it("only to its owner", async () => {
    const { caller } = await scene.stranger();
    await refused(showWorker(scene.parts, caller, worker().row.id), "NOT_FOUND");
    await refused(showWorker(scene.parts, scene.admin, "nobody00000000"), "NOT_FOUND");
  });
});

describe("Cold starts", () => {
  it("are shown as percentiles over the workers that came up", async () => {
    expect(await showColdStarts(scene.parts, endpoint)).toEqual({ starts: 0 });
    const { createdAt } = worker().row;
    await scene.advance(950);
    await scene.take(worker());
    const totalMs = scene.clock.now() - createdAt;
    expect(await showColdStarts(scene.parts, endpoint)).toMatchObject({
      starts: 1,
      totalMs: { p50: totalMs, p90: totalMs, p99: totalMs },
    });
  });
});
