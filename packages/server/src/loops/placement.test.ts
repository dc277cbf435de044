import { afterEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { Gpu } from "../domain/hosts/gpu.js";
import type { HostFacts } from "../domain/hosts/host.js";
import { hostIsSilent } from "../domain/workers/worker.js";
import { limits } from "../limits/index.js";
import type { LiveWorker } from "../memory/registry.js";
import { readHealth } from "../operations/endpoints/read-health.js";
import { updateEndpoint } from "../operations/endpoints/save-endpoint.js";
import { showWorkers } from "../operations/workers/show-workers.js";
import { endWorker } from "../operations/workers/worker-life.js";
import { l4, plainHost } from "../testing/facts-fixture.js";
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
const launchOf = (worker: LiveWorker) => scene.provider.launches.find(({ workerId }) => workerId === worker.row.id);
const end = (worker: LiveWorker) => scene.provider.end(worker.row.id, { code: 0 });
const wanted = (endpoint: Endpoint) => scene.workersOf(endpoint).map(({ row }) => row.wanted);
const update = (endpoint: Endpoint, input: Parameters<typeof updateEndpoint>[3]) =>
  updateEndpoint(scene.parts, scene.admin, scene.now(endpoint), input);

/** An endpoint with `count` workers that have done a job each and are paused. */
async function paused(count: number): Promise<Endpoint> {
  const perJob = { scalerType: "REQUEST_COUNT", scalerValue: 1 } as const;
  const endpoint = await scene.endpoint({ flashboot: true, idleTimeout: 1, workersMax: count, ...perJob });
  for (let n = 0; n < count; n++) await scene.submit(endpoint);
  await scene.advance(50);
  for (const worker of scene.workersOf(endpoint)) {
    const [job] = await scene.take(worker);
    await scene.done(worker, job!.id);
  }
  await scene.advance(1_500);
  expect(wanted(endpoint)).toEqual(Array(count).fill("paused"));
  return endpoint;
}

describe("A GPU", () => {
  it("is given to only one worker, which is told its id", async () => {
    await on({ gpus: [l4(1), l4(2)] });
    const endpoints = [await scene.endpoint({ workersMin: 1 }), await scene.endpoint({ workersMin: 1 })];
    await scene.advance(50);
    const env = endpoints.map((endpoint) => launchOf(only(endpoint))?.env);
    expect(env.map((each) => each?.CUDA_VISIBLE_DEVICES).sort()).toEqual(["GPU-1", "GPU-2"]);
    expect(env[0]).toMatchObject({ RUNPOD_GPU_COUNT: "1" });
    expect(env[0]).not.toHaveProperty("RUNPOD_SKIP_GPU_CHECK");
  });

  it("that is not free makes a worker wait, with the reason and the holder of the GPU", async () => {
    await on({ gpus: [l4(1)] });
    const first = await scene.endpoint({ workersMin: 1 });
    await scene.advance(50);
    const second = await scene.endpoint({ gpuTypeIds: ["NVIDIA L4"] });
    const id = await scene.submit(second);
    await scene.advance(50);
    expect(launchOf(only(second))).toBeUndefined();
    const holder = `worker ${only(first).row.id} of endpoint ${first.id}`;
    expect(await scene.status(second, id)).toMatchObject({
      waitReason: "no_capacity",
      waitDetail: `It needs NVIDIA L4; free here: 0 of 1; held by ${holder}.`,
    });
    expect((await readHealth(scene.parts, second)).workers).toMatchObject({ throttled: 1, initializing: 0 });
  });

  it("makes all workers wait for the same reason, which changes with its holder", async () => {
    await on({ gpus: [l4(1)] });
    const holder = await scene.endpoint({ workersMin: 1 });
    await scene.advance(50);
    const endpoint = await scene.endpoint({ workersMin: 2, workersMax: 2 });
    await scene.advance(50);
    expect(scene.workersOf(endpoint).map(({ row }) => row.why)).toEqual(
      Array(2).fill(expect.stringContaining(holder.id)),
    );
    const first = only(holder);
    await update(holder, { workersMin: 0, workersMax: 0 });
    await scene.advance(50);
    end(first);
    await scene.advance(2_000);
    const shown = await showWorkers(scene.parts, scene.admin, scene.now(endpoint));
    const [waiting] = shown.filter(({ state }) => state === "throttled");
    const [up] = shown.filter(({ state }) => state === "initializing");
    expect(waiting?.why).toBe(`It needs GPU; free here: 0 of 1; held by worker ${up?.id} of endpoint ${endpoint.id}.`);
    expect(up).not.toHaveProperty("why");
  });

  it("of a worker that was ended with its silent host is not given out while its keeper may keep it alive", async () => {
    await on({ gpus: [l4(1)] });
    const endpoint = await scene.endpoint({ workersMin: 1 });
    await scene.advance(50);
    const lost = only(endpoint);
    await endWorker(scene.parts, lost, { note: hostIsSilent }, hostIsSilent, {
      isBlameless: true,
    });
    await scene.advance(1_000);
    const [next] = scene.workersOf(endpoint);
    expect(next?.row.why).toBe(
      `It needs GPU; free here: 0 of 1; held by worker ${lost.row.id} of a host that is silent.`,
    );
    await scene.advance(limits.awayMsDefault);
    expect(next?.row.resources?.gpus).toMatchObject([{ id: "GPU-1" }]);
  });

  it("is shown as held by another user's worker, without its name", async () => {
    await on({ gpus: [l4(1)] });
    const { caller } = await scene.stranger();
    const image = await scene.template({ imageName: "theirs" }, caller);
    const theirs = await scene.endpoint({ workersMin: 1, templateId: image.id }, caller);
    await scene.advance(50);
    const ours = await scene.endpoint();
    const id = await scene.submit(ours);
    await scene.advance(50);
    const { waitDetail } = await scene.status(ours, id);
    expect(waitDetail).toContain("held by a worker or pod of another user");
    await endWorker(scene.parts, only(theirs), { note: hostIsSilent }, hostIsSilent, { isBlameless: true });
    await scene.advance(1_000);
    expect((await scene.status(ours, id)).waitDetail).toContain(
      "held by a worker or pod of another user, whose host is silent",
    );
    expect(waitDetail).not.toContain(theirs.id);
  });

  it("goes to the worker that has waited longest as soon as its holder has ended", async () => {
    await on({ gpus: [l4(1)] });
    const [first, second, third] = [
      await scene.endpoint({ workersMin: 1, workersMax: 1 }),
      await scene.endpoint({ workersMin: 1 }),
      await scene.endpoint({ workersMin: 1 }),
    ];
    await scene.advance(50);
    end(only(first));
    await scene.advance(50);
    expect(launchOf(only(second!))?.env.CUDA_VISIBLE_DEVICES).toBe("GPU-1");
    expect(only(second!).row).toMatchObject({ placedAt: expect.any(Number) });
    expect(launchOf(only(third!))).toBeUndefined();
  });

  it("is chosen by the endpoint's order, the next one if the first is missing", async () => {
    await on({ gpus: [l4(1), a40] });
    const endpoint = await scene.endpoint({ workersMin: 2, gpuTypeIds: ["NVIDIA A40", "NVIDIA L4"] });
    await scene.advance(50);
    expect(scene.workersOf(endpoint).map(({ row }) => row.resources?.gpus[0]?.id)).toEqual(["GPU-9", "GPU-1"]);
  });

  it("is chosen by the tiers of gpuIds in their order", async () => {
    await on({ gpus: [l4(1), a40] });
    const endpoint = await scene.endpoint({ workersMin: 1, gpuIds: "AMPERE_48,AMPERE_24" });
    await scene.advance(50);
    expect(only(endpoint).row.resources?.gpus).toEqual([{ id: "GPU-9", name: "NVIDIA A40" }]);
  });

  it("comes with others of its type if gpuCount asks for more", async () => {
    await on({ gpus: [l4(1), a40, l4(2)] });
    const endpoint = await scene.endpoint({ workersMin: 1, gpuCount: 2 });
    await scene.advance(50);
    expect(launchOf(only(endpoint))?.env).toMatchObject({ CUDA_VISIBLE_DEVICES: "GPU-1,GPU-2", RUNPOD_GPU_COUNT: "2" });
  });

  it("stays with a paused worker until another worker needs it; then the paused worker gives way", async () => {
    await on({ gpus: [l4(1)] });
    const holder = only(await paused(1));
    const other = await scene.endpoint({ workersMin: 1 });
    await scene.advance(50);
    expect(holder.row).toMatchObject({ wanted: "stopped", why: "another worker needs what it holds" });
    end(holder);
    await scene.advance(50);
    expect(launchOf(only(other))?.env.CUDA_VISIBLE_DEVICES).toBe("GPU-1");
  });

  it("is given up by only one paused worker for a worker that needs it", async () => {
    await on({ gpus: [l4(1), l4(2), l4(3)] });
    const flash = await paused(3);
    await scene.endpoint({ workersMin: 1 });
    await scene.advance(50);
    expect(wanted(flash).sort()).toEqual(["paused", "paused", "stopped"]);
  });

  it("is given up by no paused worker if a stopping worker already frees it", async () => {
    await on({ gpus: [l4(1), l4(2)] });
    const flash = await paused(1);
    const leaving = await scene.endpoint({ workersMin: 1, workersMax: 1 });
    await scene.advance(50);
    await scene.take(only(leaving));
    await update(leaving, { workersMin: 0, workersMax: 0 });
    await scene.advance(50);
    expect(wanted(leaving)).toEqual(["stopped"]);
    await scene.endpoint({ workersMin: 1, workersMax: 1 });
    await scene.advance(50);
    expect(wanted(flash)).toEqual(["paused"]);
  });

  it("is no longer waited for by the last worker if fewer are wanted", async () => {
    await on({ gpus: [l4(1)] });
    await scene.endpoint({ workersMin: 1, workersMax: 1 });
    await scene.advance(50);
    const endpoint = await scene.endpoint({ workersMax: 3, workersMin: 2 });
    await scene.advance(50);
    const first = Math.min(...scene.workersOf(endpoint).map(({ row }) => row.no));
    await update(endpoint, { workersMin: 1 });
    await scene.advance(50);
    expect(scene.workersOf(endpoint).map(({ row }) => row.no)).toEqual([first]);
  });

  it("that no host has leaves an idle endpoint its worker for its idle time", async () => {
    await on({ gpus: [l4(1)] });
    const endpoint = await scene.endpoint({ idleTimeout: 30 });
    const id = await scene.submit(endpoint);
    await scene.advance(50);
    const [job] = await scene.take(only(endpoint));
    await scene.done(only(endpoint), job!.id);
    expect(id).toBe(job!.id);
    await update(endpoint, { gpuTypeIds: ["NVIDIA H100 PCIe"] });
    await scene.advance(15_000);
    expect(wanted(endpoint)).toEqual(["running"]);
    const late = await scene.submit(endpoint);
    expect(await scene.take(only(endpoint))).toMatchObject([{ id: late }]);
  });

  it("that fails takes its worker out of use, with that reason", async () => {
    await on({ gpus: [l4(1), l4(2)] });
    const endpoint = await scene.endpoint({ workersMin: 1 });
    await scene.advance(50);
    const worker = only(endpoint);
    await scene.take(worker);
    facts = { ...facts, gpus: [l4(2)] };
    scene.parts.bell.ring("workers");
    await scene.advance(50);
    expect(worker.row).toMatchObject({
      wanted: "stopped",
      trouble: { why: "its GPU GPU-1 (NVIDIA L4) is gone" },
    });
    const [, next] = scene.workersOf(endpoint);
    expect(next?.row.resources?.gpus[0]?.id).toBe("GPU-2");
  });

  it("whose state is unknown for a moment takes no worker out of use", async () => {
    await on({ gpus: [l4(1)] });
    const endpoint = await scene.endpoint({ workersMin: 1 });
    await scene.advance(50);
    facts = { ...facts, gpus: [], gpuProblem: "nvidia-smi did not answer", gpusUnseen: true };
    scene.parts.bell.ring("workers");
    await scene.advance(6_000);
    expect(only(endpoint).row).toMatchObject({ wanted: "running", trouble: undefined });
  });

  it("is not required if the host does not enforce it", async () => {
    await on({ gpusEnforced: false });
    const endpoint = await scene.endpoint({ workersMin: 1, gpuIds: "ADA_80_PRO", gpuCount: 8 });
    await scene.advance(50);
    expect(launchOf(only(endpoint))?.env).toMatchObject({ RUNPOD_GPU_COUNT: "0", RUNPOD_SKIP_GPU_CHECK: "true" });
  });

  it("is no longer waited for once the jobs are gone", async () => {
    await on({ gpus: [] });
    const endpoint = await scene.endpoint({ gpuTypeIds: ["NVIDIA L4"] });
    const id = await scene.submit(endpoint, { input: {}, policy: { ttl: 10_000 } });
    await scene.advance(50);
    expect(await scene.status(endpoint, id)).toMatchObject({ waitDetail: "It needs NVIDIA L4; here is no GPU." });
    await scene.advance(20_000);
    expect(scene.workersOf(endpoint)).toEqual([]);
  });
});

describe("Processors and memory", () => {
  const cpu = { computeType: "CPU", workersMin: 1 } as const;

  it("are given to workers of CPU endpoints like GPUs, and passed on to them", async () => {
    await on({ cpus: 4, memoryMib: 16_384 });
    const first = await scene.endpoint({ ...cpu, vcpuCount: 3, cpuFlavorIds: ["cpu3g"] });
    const second = await scene.endpoint({ ...cpu, vcpuCount: 2 });
    await scene.advance(50);
    expect(launchOf(only(first))?.env).toMatchObject({ RUNPOD_CPU_COUNT: "3", RUNPOD_MEM_GB: "12" });
    expect(launchOf(only(second))).toBeUndefined();
    expect(only(second).row.why).toBe(
      `It needs 2 vCPU; free here: 1 vCPU and 4 GB of 4 vCPU and 16 GB; held by worker ${only(first).row.id} of endpoint ${first.id}.`,
    );
    end(only(first));
    await scene.advance(50);
    expect(launchOf(only(second))).toBeDefined();
  });

  it("are not counted if the endpoint does not say how many it needs", async () => {
    await on({ cpus: 1, memoryMib: 1_024 });
    const endpoint = await scene.endpoint({ ...cpu, workersMin: 3 });
    await scene.advance(50);
    expect(scene.workersOf(endpoint).map(launchOf)).not.toContain(undefined);
  });
});
