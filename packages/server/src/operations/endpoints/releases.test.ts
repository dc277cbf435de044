import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { showReleases } from "../../testing/releases-fixture.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { deleteTemplate, updateTemplate } from "../templates/save-template.js";
import { createVolume, deleteVolume } from "../volumes/save-volume.js";
import { endWorker } from "../workers/worker-life.js";
import { rollBack } from "./releases.js";
import { updateEndpoint } from "./save-endpoint.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint({ workersMin: 1, env: { MODEL: "small" } });
});
afterEach(() => scene.close());

const update = (input: Parameters<typeof updateEndpoint>[3]) =>
  updateEndpoint(scene.parts, scene.admin, scene.now(endpoint), input);
const back = (n: number, caller = scene.admin) => rollBack(scene.parts, caller, endpoint.id, n);
const releases = () => showReleases(scene.parts, scene.admin, scene.now(endpoint));
const states = async () => (await releases()).map(({ version, state }) => `${version} ${state}`);
const templateOf = (of: Endpoint) => scene.parts.registry.template(of.settings.templateId)!;

describe("The versions of an endpoint", () => {
  it("show its definition after each save that changed it, newest first", async () => {
    await update({ env: { MODEL: "large" } });
    await update({ name: "other", workersMax: 5 });
    await updateTemplate(scene.parts, scene.admin, templateOf(endpoint), { env: { MODE: "fast" } });
    expect(await releases()).toMatchObject([
      { version: 3, env: { MODEL: "large", MODE: "fast" }, imageName: scene.directory },
      { version: 2, env: { MODEL: "large" } },
      { version: 1, env: { MODEL: "small" } },
    ]);
  });

  it("show their state: unproven, rolling, current, and past", async () => {
    await scene.runAll();
    await scene.advance(50);
    expect(await states()).toEqual(["1 unproven"]);
    await scene.take(scene.workersOf(endpoint)[0]!);
    expect(await states()).toEqual(["1 current"]);
    await update({ env: { MODEL: "large" } });
    await scene.advance(50);
    expect(await states()).toEqual(["2 unproven", "1 past"]);
    await scene.take(scene.workersOf(endpoint).find(({ row }) => row.version === 2)!);
    expect(await states()).toEqual(["2 rolling", "1 past"]);
  });

  it("show that a version stopped rolling, and why", async () => {
    await scene.runAll();
    await scene.advance(50);
    await scene.take(scene.workersOf(endpoint)[0]!);
    await update({ env: { MODEL: "broken" } });
    for (const _ of [1, 2, 3]) {
      await scene.advance(10_000);
      const fresh = scene.workersOf(endpoint).find(({ row }) => row.version === 2)!;
      scene.provider.logTails.set(fresh.row.id, "no such model");
      scene.provider.end(fresh.row.id, { code: 1 });
      await scene.advance(50);
    }
    expect(await releases()).toMatchObject([
      { version: 2, state: "stopped", why: expect.stringContaining("no such model") },
      { version: 1, workers: 1 },
    ]);
  });

  it("are not blamed for a failed start of the previous version that is recorded while they are saved", async () => {
    scene.during("endpoints.save", () => {
      void scene.parts.registry.noteStart(endpoint, 1, { failedStarts: 3, at: 1, verdict: "of version 1" });
    });
    await update({ env: { MODEL: "large" } });
    await scene.settle();
    const [stored] = await scene.stores.endpoints.all();
    expect([stored?.version, stored?.failedStarts, scene.now(endpoint).failedStarts]).toEqual([2, 0, 0]);
  });

  it("are kept up to a number", async () => {
    for (let n = 0; n < 55; n++) await update({ env: { N: String(n) } });
    const kept = (await releases()).map(({ version }) => version);
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([50, 56, 7]);
  });

  it("are kept beyond that number if one of them is the last that has started successfully", async () => {
    await scene.runAll();
    await scene.parts.registry.noteStart(endpoint, 1, { failedStarts: 0, at: 1 });
    for (let n = 0; n < 55; n++) await update({ env: { N: String(n) } });
    const kept = (await releases()).map(({ version }) => version);
    expect([kept.length, kept[0], kept.at(-2), kept.at(-1)]).toEqual([51, 56, 7, 1]);
  });

  it("survive a restart", async () => {
    await update({ env: { MODEL: "large" } });
    const before = await releases();
    scene = await scene.restart();
    expect(await releases()).toEqual(before);
  });
});

describe("A rollback", () => {
  it("makes a new version from an earlier one, and leaves scaling settings as they are", async () => {
    await update({ env: { MODEL: "large" }, workersMax: 7, name: "renamed" });
    expect(await back(1)).toMatchObject({ version: 3, env: { MODEL: "small" }, workersMax: 7, name: "renamed" });
    expect((await releases())[0]).toMatchObject({ version: 3, rollbackOf: 1, env: { MODEL: "small" } });
  });

  it("restores the version's template, and leaves the saved template itself", async () => {
    const template = templateOf(endpoint);
    await updateTemplate(scene.parts, scene.admin, template, { dockerStartCmd: ["python", "new.py"] });
    await back(1);
    expect((await releases())[0]).toMatchObject({ dockerStartCmd: [] });
    expect(templateOf(endpoint).settings.dockerStartCmd).toEqual(["python", "new.py"]);
    scene.run(scene.loops.scale(), scene.loops.tend());
    await scene.advance(50);
    expect(scene.provider.launches.at(-1)?.command).toEqual([]);
  });

  it("keeps the restored template if env is changed afterwards", async () => {
    await updateTemplate(scene.parts, scene.admin, templateOf(endpoint), { dockerStartCmd: ["broken"] });
    await back(1);
    await update({ env: { MODEL: "large" } });
    expect((await releases())[0]).toMatchObject({ version: 4, dockerStartCmd: [], env: { MODEL: "large" } });
  });

  it("removes settings that the earlier version did not have", async () => {
    await update({ computeType: "CPU", vcpuCount: 2 });
    await back(1);
    expect(scene.now(endpoint).settings).toMatchObject({ computeType: "GPU" });
    expect(scene.now(endpoint).settings).not.toHaveProperty("vcpuCount");
  });

  it("works if a version never came up", async () => {
    const { registry } = scene.parts;
    await update({ env: { MODEL: "broken" } });
    await registry.noteStart(scene.now(endpoint), 2, { failedStarts: 3, at: 1, verdict: "no" });
    await back(1);
    expect(scene.now(endpoint)).toMatchObject({ version: 3, failedStarts: 0, verdict: undefined });
  });

  it("is refused for an unknown version, the present version, and another user", async () => {
    await refused(back(9), "NOT_FOUND", /Version 9/);
    await refused(back(1), "INVALID_INPUT", /current/);
    const { caller } = await scene.stranger();
    await update({ env: {} });
    await refused(back(1, caller), "ENDPOINT_NOT_FOUND");
  });

  it("is refused if the template or the volume of that version is gone", async () => {
    const first = templateOf(endpoint);
    const { id: templateId } = await scene.template();
    const volume = await createVolume(scene.parts, scene.admin, { name: "v", size: 1, dataCenterId: "d" });
    await update({ networkVolumeId: volume.id });
    await update({ templateId, networkVolumeId: "" });
    await deleteVolume(scene.parts, scene.admin, volume.id);
    await refused(back(2), "INVALID_INPUT", /volume/);
    await deleteTemplate(scene.parts, scene.admin, first);
    await refused(back(1), "INVALID_INPUT", /template/);
  });
});

describe("A worker", () => {
  it("is made from its own version, whatever was saved later", async () => {
    scene.run(scene.loops.scale());
    await scene.advance(50);
    const [worker] = scene.workersOf(endpoint);
    await scene.parts.registry.saveEndpoint(endpoint, { ...endpoint.settings, env: { MODEL: "large" } }, undefined);
    scene.run(scene.loops.tend());
    await scene.advance(50);
    expect(scene.provider.launches[0]?.env.MODEL).toBe("small");
    await endWorker(scene.parts, worker!, { code: 0 }, "over");
  });
});
