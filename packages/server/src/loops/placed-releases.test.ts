import { afterEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { Gpu } from "../domain/hosts/gpu.js";
import type { HostFacts } from "../domain/hosts/host.js";
import type { LiveWorker } from "../memory/registry.js";
import { updateEndpoint } from "../operations/endpoints/save-endpoint.js";
import { l4, plainHost } from "../testing/facts-fixture.js";
import { showReleases } from "../testing/releases-fixture.js";
import { Scene } from "../testing/scene-fixture.js";

const a40: Gpu = { id: "GPU-9", index: 9, name: "NVIDIA A40", memoryMib: 46_068, driver: "570" };

let scene: Scene;
let facts: HostFacts;
afterEach(() => scene.close());

/** A server on a machine with these GPUs. */
async function on(more: Partial<HostFacts>): Promise<void> {
  facts = { ...plainHost, gpusEnforced: true, ...more };
  scene = await Scene.open({ here: { facts: () => facts } });
  await scene.runAll();
}
const only = (endpoint: Endpoint): LiveWorker => scene.workersOf(endpoint)[0] as LiveWorker;
const end = (worker: LiveWorker) => scene.provider.end(worker.row.id, { code: 0 });
const update = (endpoint: Endpoint, input: Parameters<typeof updateEndpoint>[3]) =>
  updateEndpoint(scene.parts, scene.admin, scene.now(endpoint), input);

describe("A GPU", () => {
  it("that is the only one passes from a worker of the old version to a worker of the new version", async () => {
    await on({ gpus: [l4(1)] });
    const endpoint = await scene.endpoint({ workersMin: 1, workersMax: 3 });
    await scene.advance(50);
    await scene.take(only(endpoint));
    await update(endpoint, { env: { A: "1" } });
    for (let n = 0; n < 5; n++) {
      await scene.advance(10_000);
      for (const worker of scene.workersOf(endpoint)) {
        if (!scene.provider.isRunning(worker.row.id)) continue;
        if (worker.row.wanted === "stopped") end(worker);
        else await scene.take(worker); // it polls, like a real worker
      }
    }
    const [fresh, ...others] = scene.workersOf(endpoint);
    expect(others).toEqual([]);
    expect(fresh?.row).toMatchObject({ version: 2, wanted: "running", placedAt: expect.any(Number) });
  });

  it("that has just become free goes to the new version, and no old worker has to make way", async () => {
    await on({ gpus: [l4(1), l4(2)] });
    const other = await scene.endpoint({ workersMin: 1, workersMax: 1 });
    const endpoint = await scene.endpoint({ workersMin: 1, workersMax: 5 });
    await scene.advance(50);
    const [old] = scene.workersOf(endpoint);
    await scene.take(old!);
    await update(other, { workersMin: 0, workersMax: 0 });
    await update(endpoint, { env: { A: "1" } });
    for (let n = 0; n < 100 && scene.workersOf(endpoint).length < 2; n++) await scene.advance(1);
    end(only(other));
    await scene.advance(50);
    const [, fresh] = scene.workersOf(endpoint);
    expect([old?.row.wanted, fresh?.row.throttledAt !== undefined, fresh?.row.placedAt !== undefined]).toEqual([
      "running",
      true,
      true,
    ]);
  });

  /** Lets workers that were told to stop end, and the others poll, second by second. */
  const pass = async (seconds: number) => {
    for (let n = 0; n < seconds; n++) {
      await scene.advance(1_000);
      for (const worker of scene.parts.registry.liveWorkers()) {
        if (!scene.provider.isRunning(worker.row.id)) continue;
        if (worker.row.wanted === "stopped") end(worker);
        else await scene.take(worker);
      }
    }
  };
  const versions = (endpoint: Endpoint) => scene.workersOf(endpoint).map(({ row }) => `${row.version} ${row.wanted}`);

  it.each([
    ["another endpoint holds", "NVIDIA A40", "free here: 0 of 1"],
    ["no host has", "NVIDIA H100 PCIe", "here are 2 × NVIDIA L4"],
  ])(
    "that %s keeps a release waiting, with the reason, and the present workers continue to serve",
    async (_, type, why) => {
      await on({ gpus: [l4(1), l4(2), a40] });
      await scene.endpoint({ workersMin: 1, gpuTypeIds: ["NVIDIA A40"] });
      await scene.advance(50);
      const endpoint = await scene.endpoint({ workersMin: 2, workersMax: 5, gpuTypeIds: ["NVIDIA L4"] });
      await pass(2);
      await update(endpoint, { gpuTypeIds: [type] });
      await pass(30);
      expect(versions(endpoint)).toEqual(["1 running", "1 running", "2 running", "2 running"]);
      const id = await scene.submit(endpoint);
      expect(await scene.take(only(endpoint))).toMatchObject([{ id }]);
      const [release] = await showReleases(scene.parts, scene.admin, scene.now(endpoint));
      expect(release).toMatchObject({ state: "unproven", why: expect.stringContaining(why) });
    },
  );

  it("that an old worker leaves is reserved while another one makes way for the same new worker", async () => {
    await on({ gpus: [l4(1), l4(2)] });
    const endpoint = await scene.endpoint({ workersMin: 2, workersMax: 4 });
    await scene.advance(50);
    const olds = scene.workersOf(endpoint);
    const jobs: string[] = [];
    for (const worker of olds) {
      jobs.push(await scene.submit(endpoint));
      await scene.take(worker);
    }
    const other = await scene.endpoint({ workersMin: 1, workersMax: 1 });
    await scene.advance(50);
    await update(endpoint, { gpuCount: 2 });
    await scene.advance(1_000);
    for (const [n, worker] of olds.entries()) {
      await scene.done(worker, jobs[n] as string);
      await scene.take(worker);
      for (let second = 0; second < 5; second++) {
        await scene.advance(1_000);
        if (worker.row.wanted === "stopped" && scene.provider.isRunning(worker.row.id)) end(worker);
        const next = olds[n + 1];
        if (next) await scene.ping(next, jobs[n + 1] as string);
      }
    }
    const placed = scene.workersOf(endpoint).filter(({ row }) => row.version === 2 && row.resources !== undefined);
    expect(placed.map(({ row }) => row.resources?.gpus.map(({ id }) => id).sort())).toEqual([["GPU-1", "GPU-2"]]);
    expect(only(other).row.placedAt).toBeUndefined();
  });

  it("that becomes free after a release found it taken lets the release go on, even if nothing else happens", async () => {
    await on({ gpus: [l4(1), a40] });
    const holder = await scene.endpoint({ workersMin: 1, workersMax: 1, gpuTypeIds: ["NVIDIA A40"] });
    const endpoint = await scene.endpoint({ workersMin: 1, workersMax: 1, gpuTypeIds: ["NVIDIA L4"] });
    await scene.advance(50);
    await scene.take(only(endpoint), { holdsNothing: true });
    await update(endpoint, { gpuTypeIds: ["NVIDIA A40"] });
    await scene.advance(2_000);
    expect(scene.workersOf(endpoint).map(({ row }) => row.version)).toEqual([1]);
    const last = only(holder);
    await update(holder, { workersMin: 0, workersMax: 0 });
    await scene.advance(50);
    if (scene.provider.isRunning(last.row.id)) end(last);
    await scene.advance(6_000);
    expect(only(endpoint).row.wanted).toBe("stopped");
  });

  it("that an old worker leaves is not reserved for a new worker that needs a different GPU", async () => {
    await on({ gpus: [l4(1), l4(2), a40] });
    const endpoint = await scene.endpoint({ workersMin: 2, workersMax: 6, gpuTypeIds: ["NVIDIA L4"] });
    await scene.advance(50);
    const [idle, busy] = scene.workersOf(endpoint);
    const job = await scene.submit(endpoint);
    await scene.take(busy!);
    void scene.take(idle!, { holdsNothing: true });
    const other = await scene.endpoint({ workersMin: 1, workersMax: 1, gpuTypeIds: ["NVIDIA L4"] });
    await scene.advance(50);
    await update(endpoint, { gpuTypeIds: ["NVIDIA A40"] });
    for (let second = 0; second < 15; second++) {
      await scene.advance(1_000);
      await scene.ping(busy!, job);
      for (const worker of scene.workersOf(endpoint)) {
        const { row } = worker;
        if (row.version === 2 && scene.provider.isRunning(row.id) && row.readyAt === undefined)
          void scene.take(worker, { holdsNothing: true });
        if (row.wanted === "stopped" && scene.provider.isRunning(row.id)) end(worker);
      }
    }
    expect(only(other).row.resources?.gpus).toHaveLength(1);
    expect(scene.workersOf(endpoint).some(({ row }) => row.no === busy!.row.no)).toBe(true);
  });

  it("that a new version cannot get keeps the only worker that workersMax allows", async () => {
    await on({ gpus: [l4(1)] });
    const endpoint = await scene.endpoint({ workersMin: 1, workersMax: 1 });
    await pass(2);
    await update(endpoint, { gpuCount: 2 });
    await pass(30);
    expect(versions(endpoint)).toEqual(["1 running"]);
  });

  it.each([1, 3])(
    "stays with its endpoint during a release, even if another endpoint waits for it (workersMax %i)",
    async (workersMax) => {
      await on({ gpus: [l4(1)] });
      const endpoint = await scene.endpoint({ workersMin: 1, workersMax });
      await pass(2);
      const other = await scene.endpoint({ workersMin: 1 });
      await pass(5);
      await update(endpoint, { env: { A: "1" } });
      await pass(20);
      expect(versions(endpoint)).toEqual(["2 running"]);
      expect(only(endpoint).row.resources?.gpus[0]?.id).toBe("GPU-1");
      await update(endpoint, { workersMin: 0, workersMax: 0 });
      await pass(10);
      expect(only(other).row.resources?.gpus[0]?.id).toBe("GPU-1");
    },
  );
});
