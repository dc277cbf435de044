import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Endpoint, endpointDefaults } from "../../domain/endpoints/endpoint.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { showEndpoint } from "../show-resources.js";
import { createVolume } from "../volumes/save-volume.js";
import type { EndpointInput } from "./endpoint-settings.js";
import { createEndpoint, deleteEndpoint, ownEndpoint, updateEndpoint } from "./save-endpoint.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

const update = (input: EndpointInput, which = endpoint) =>
  updateEndpoint(scene.parts, scene.admin, scene.now(which), input);
const settings = () => scene.now(endpoint).settings;

describe("A new endpoint", () => {
  it("has the defaults for absent fields, and its template's name", async () => {
    const { id: templateId } = await scene.template({ name: "hello" });
    const made = await createEndpoint(scene.parts, scene.admin, { templateId });
    expect(made).toMatchObject({ version: 1, ownerNo: scene.admin.ownerNo, failedStarts: 0, deletedAt: undefined });
    expect(made.id).toMatch(/^[a-z0-9]{14}$/);
    expect(made.settings).toEqual({ ...endpointDefaults, name: "hello", templateId });
  });

  it("has the given values, in their order", async () => {
    const input = {
      gpuTypeIds: ["NVIDIA L4", "NVIDIA A40"],
      locations: " US, CZ ",
      env: { A: "1" },
      workersMin: 1,
      workersMax: 7,
      idleTimeout: 60,
      scalerType: "REQUEST_COUNT",
      scalerValue: 2,
      executionTimeoutMs: 5_000,
      flashboot: true,
    } as const;
    const made = await scene.endpoint(input);
    const { flashboot, ...rest } = input;
    expect(made.settings).toMatchObject({ ...rest, locations: "US,CZ", flashBootType: "FLASHBOOT" });
  });

  it.each([
    [{ templateId: "nothing" }, /no template 'nothing'/],
    [{ workersMin: 4, workersMax: 3 }, /workersMin \(4\) is above workersMax \(3\)/],
    [{ workersMin: 4 }, /workersMin \(4\) is above/],
    [{ executionTimeoutMs: 4_999 }, /executionTimeoutMs/],
    [{ executionTimeoutMs: 604_800_001 }, /executionTimeoutMs/],
    [{ gpuIds: "AMPERE_16,MADE_UP" }, /'MADE_UP' in gpuIds/],
    [{ gpuTypeIds: ["NVIDIA L4", "Abacus"] }, /'Abacus' in gpuTypeIds/],
    [{ locations: "US,XX" }, /'XX' in locations/],
    [{ flashBootType: "FAST" }, /flashBootType/],
    [{ networkVolumeId: "nothing" }, /no network volume 'nothing'/],
    [{ networkVolumeIds: ["nothing"] }, /no network volume/],
    [{ env: { "1A": "x" } }, /'1A' in env/],
    [{ dataCenterIds: ["EU-RO-1", "\0"] }, /'dataCenterIds' contains a control character/],
    [{ allowedCudaVersions: ["12\x1b"] }, /'allowedCudaVersions' contains/],
    [{ cpuFlavorIds: ["\n"] }, /'cpuFlavorIds' contains/],
    [{ instanceIds: ["\x7f"] }, /'instanceIds' contains/],
    [{ minCudaVersion: "12\u0085" }, /'minCudaVersion' must be one of 13\.0/],
    [{ name: "a\nb" }, /'name' contains/],
    [{ env: { A: "x\0" } }, /env.A/],
  ] as [EndpointInput, RegExp][])("of %j is refused", async (input, words) => {
    await refused(scene.endpoint(input), "INVALID_INPUT", words);
  });

  it("takes 0 as the default executionTimeout", async () => {
    expect((await scene.endpoint({ executionTimeoutMs: 0 })).settings.executionTimeoutMs).toBe(600_000);
  });

  it("may not use another user's template or volume, unless the template is public", async () => {
    const { caller } = await scene.stranger();
    const make = (input: EndpointInput) => createEndpoint(scene.parts, caller, input);
    const image = { imageName: "registry.example/image" };
    const hidden = await scene.template(image);
    const open = await scene.template({ ...image, isPublic: true });
    await refused(make({ templateId: hidden.id }), "INVALID_INPUT", /no template/);
    expect((await make({ templateId: open.id })).ownerNo).toBe(caller.ownerNo);
    const volume = await createVolume(scene.parts, scene.admin, { name: "v", size: 1, dataCenterId: "here" });
    await refused(make({ templateId: open.id, networkVolumeId: volume.id }), "INVALID_INPUT", /no network volume/);
  });

  it("of a user who is not an admin may not use a directory as its image, nor be given one later", async () => {
    const { caller } = await scene.stranger();
    const local = await scene.template({ isPublic: true });
    const image = await scene.template({ imageName: "registry.example/image", isPublic: true });
    await refused(createEndpoint(scene.parts, caller, { templateId: local.id }), "INVALID_INPUT", /admin/);
    const made = await createEndpoint(scene.parts, caller, { templateId: image.id });
    await refused(updateEndpoint(scene.parts, caller, made, { templateId: local.id }), "INVALID_INPUT", /admin/);
  });
});

describe("A change of an endpoint", () => {
  it("changes only the sent fields, and never applies a default", async () => {
    const full = await scene.endpoint({
      env: { A: "1" },
      workersMax: 9,
      idleTimeout: 77,
      locations: "US",
      flashBootType: "PRIORITY_FLASHBOOT",
      gpuTypeIds: ["NVIDIA A40"],
      executionTimeoutMs: 9_000,
      allowedCudaVersions: ["12.4"],
    });
    const changed = await update({ name: "renamed" }, full);
    expect(changed.settings).toEqual({ ...full.settings, name: "renamed" });
    expect((await update({}, full)).settings).toEqual(changed.settings);
  });

  it("clears by null: a field with a default gets that, a field without one is removed", async () => {
    await update({ env: { A: "1" }, workersMax: 9, minCudaVersion: "12.1", vcpuCount: 4, locations: "US" });
    await update({ env: null, workersMax: null, minCudaVersion: null, vcpuCount: null, locations: null, name: null });
    const { templateId } = endpoint.settings;
    expect(settings()).toEqual({ ...endpointDefaults, name: "scene", templateId });
  });

  it('clears locations and networkVolumeId by "", and nothing else', async () => {
    const volume = await createVolume(scene.parts, scene.admin, { name: "v", size: 1, dataCenterId: "here" });
    await update({ locations: "US", networkVolumeId: volume.id, gpuIds: "ADA_24", flashBootType: "FLASHBOOT" });
    expect(settings().networkVolumeIds).toEqual([volume.id]);
    const before = settings();
    const empty = { name: "", gpuIds: "", flashBootType: "", minCudaVersion: "", scalerType: "", type: "" };
    await update({ ...empty, locations: "", networkVolumeId: "" } as unknown as EndpointInput);
    expect(settings()).toEqual({ ...before, locations: "", networkVolumeIds: [] });
  });

  it("keeps gpuTypeIds if gpuIds is sent back as shown", async () => {
    await update({ gpuTypeIds: ["NVIDIA L4", "NVIDIA A40"] });
    const shown = showEndpoint(scene.parts, scene.now(endpoint)).gpuIds;
    expect(shown).toBe("AMPERE_24,AMPERE_48");
    await update({ gpuIds: shown });
    expect(settings().gpuTypeIds).toEqual(["NVIDIA L4", "NVIDIA A40"]);
    await update({ gpuIds: "AMPERE_24" });
    expect(settings().gpuTypeIds).toEqual(["NVIDIA RTX A5000", "NVIDIA L4", "NVIDIA GeForce RTX 3090"]);
  });

  it('shows gpuIds "" for a type without a tier, and accepts that unchanged', async () => {
    await update({ gpuTypeIds: ["Tesla T4"] });
    expect(showEndpoint(scene.parts, scene.now(endpoint)).gpuIds).toBe("");
    await update({ gpuIds: "" });
    expect(settings().gpuTypeIds).toEqual(["Tesla T4"]);
  });

  it("treats flashboot and flashBootType as the same", async () => {
    const after = async (input: EndpointInput) => {
      const shown = showEndpoint(scene.parts, await update(input));
      return [shown.flashboot, shown.flashBootType];
    };
    expect(await after({ flashboot: true })).toEqual([true, "FLASHBOOT"]);
    expect(await after({ flashboot: false })).toEqual([false, "OFF"]);
    expect(await after({ flashBootType: "PRIORITY_FLASHBOOT" })).toEqual([true, "PRIORITY_FLASHBOOT"]);
    expect(await after({ flashboot: true })).toEqual([true, "PRIORITY_FLASHBOOT"]);
    expect(await after({ flashBootType: null })).toEqual([false, "OFF"]);
  });

  it("never changes the type", async () => {
    await update({ type: "LB" });
    expect(settings().type).toBe("QB");
  });

  it("is refused with the endpoint left as it was", async () => {
    const before = scene.now(endpoint);
    await refused(update({ name: "new", workersMin: 4 }), "INVALID_INPUT");
    await refused(update({ name: "new", locations: "XX" }), "INVALID_INPUT");
    expect(scene.now(endpoint)).toEqual(before);
  });

  it("at the same time as another change loses neither", async () => {
    const fresh = () => ownEndpoint(scene.parts, scene.admin, endpoint.id);
    await Promise.all([
      updateEndpoint(scene.parts, scene.admin, fresh(), { name: "renamed" }),
      updateEndpoint(scene.parts, scene.admin, fresh(), { idleTimeout: 99 }),
    ]);
    expect(settings()).toMatchObject({ name: "renamed", idleTimeout: 99 });
  });

  it("survives a restart, with the same version", async () => {
    await Promise.all([update({ env: { A: "1" } }), update({ env: { A: "2" } })]);
    const before = scene.now(endpoint);
    scene = await scene.restart();
    expect(scene.now(endpoint)).toEqual(before);
  });
});

describe("A release", () => {
  it.each([[{ env: { A: "1" } }], [{ gpuTypeIds: ["NVIDIA A40"] }], [{ gpuCount: 2 }], [{ computeType: "CPU" }]] as [
    EndpointInput,
  ][])("is made by %j, and closes the present workers", async (input) => {
    const worker = await scene.worker(endpoint);
    await scene.take(worker);
    expect((await update(input)).version).toBe(2);
    expect(worker.row.wanted).toBe("closed");
    const id = await scene.submit(endpoint);
    expect(await scene.take(worker)).toEqual([]);
    expect(await scene.take(await scene.worker(endpoint))).toMatchObject([{ id }]);
  });

  it.each([
    [{ name: "renamed" }],
    [{ workersMax: 9 }],
    [{ idleTimeout: 9 }],
    [{ locations: "US" }],
    [{ scalerValue: 9, scalerType: "REQUEST_COUNT" }],
    [{ executionTimeoutMs: 9_000 }],
    [{ flashboot: true }],
  ] as [EndpointInput][])("is not made by %j", async (input) => {
    const worker = await scene.worker(endpoint);
    expect((await update(input)).version).toBe(1);
    expect(worker.row.wanted).toBe("running");
  });

  it("keeps as many workers as waiting jobs need, until new ones are up", async () => {
    const [one, other] = [await scene.worker(endpoint), await scene.worker(endpoint)] as const;
    await scene.take(one);
    await scene.take(other);
    await scene.parts.line(endpoint.no).ring();
    await update({ workersMin: 1 });
    await update({ env: { A: "1" } });
    expect([one.row.wanted, other.row.wanted].sort()).toEqual(["closed", "running"]);
  });

  it("lets a busy worker finish", async () => {
    const worker = await scene.worker(endpoint);
    const id = await scene.running(endpoint, worker);
    await update({ env: { A: "1" } });
    await scene.done(worker, id);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
  });

  it("also closes workers for workersMax 0, without a new version", async () => {
    const worker = await scene.worker(endpoint);
    expect((await update({ workersMax: 0 })).version).toBe(1);
    expect(worker.row.wanted).toBe("closed");
  });

  it("and any other save end crash-loop pauses", async () => {
    await scene.parts.registry.noteStart(endpoint, 1, { failedStarts: 5, at: 1, verdict: "no" });
    expect(await update({ name: "again" })).toMatchObject({ failedStarts: 0, failedAt: undefined, verdict: undefined });
  });
});

describe("Deleting an endpoint", () => {
  it("is refused while workersMin or workersMax is not 0", async () => {
    const remove = () => deleteEndpoint(scene.parts, scene.admin, scene.now(endpoint), { setToZero: false });
    await refused(remove(), "IN_USE", /workersMin and workersMax to 0/);
    await update({ workersMax: 0 });
    await remove();
    await refused(() => ownEndpoint(scene.parts, scene.admin, endpoint.id), "ENDPOINT_NOT_FOUND");
  });

  it("cancels its unfinished jobs, tells their workers, and sends their webhooks", async () => {
    const worker = await scene.worker(endpoint);
    const running = await scene.running(endpoint, worker, { input: {}, webhook: "https://example.com/" });
    const waiting = await scene.submit(endpoint, { input: {}, webhook: "https://example.com/" });
    const stops = scene.stops(worker);
    await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
    await scene.settle();
    for (const id of [running, waiting]) {
      const job = await scene.stores.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() });
      expect(job).toMatchObject({ status: "CANCELLED", error: expect.stringContaining("endpoint deleted") });
    }
    expect(stops.jobs).toEqual([running]);
    expect(await scene.stores.deliveries.list({ endpointNos: [endpoint.no], limit: 10 })).toHaveLength(2);
    expect(await scene.health(endpoint)).toMatchObject({ waiting: 0, running: 0 });
  });

  it("leaves finished jobs and other endpoints alone", async () => {
    const worker = await scene.worker(endpoint);
    const done = await scene.running(endpoint, worker);
    await scene.done(worker, done);
    const other = await scene.endpoint();
    const waits = await scene.submit(other);
    await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
    expect([await scene.state(endpoint, done), await scene.state(other, waits)]).toEqual(["COMPLETED", "IN_QUEUE"]);
  });
});

it("Another user's endpoint is refused exactly like an unknown one", async () => {
  const { caller } = await scene.stranger();
  await refused(() => ownEndpoint(scene.parts, caller, endpoint.id), "ENDPOINT_NOT_FOUND", new RegExp(endpoint.id));
  await refused(() => ownEndpoint(scene.parts, caller, "nothing"), "ENDPOINT_NOT_FOUND", /nothing/);
});
