import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Gpu } from "../domain/hosts/gpu.js";
import type { HostFacts, Stock } from "../domain/hosts/host.js";
import { limits } from "../limits/index.js";
import { Scene } from "../testing/scene-fixture.js";
import { StockTaking } from "./take-stock.js";

const gpu = (index: number): Gpu => ({
  id: `GPU-${index}`,
  index,
  name: "NVIDIA L4",
  memoryMib: 23_034,
  driver: "550",
});
const stockOf = (...gpus: Gpu[]): Stock => ({ gpus, hasGpus: gpus.length > 0, problems: [], cpus: 8, memoryMib: 1 });
const none: Stock = { ...stockOf(), problems: ["nvidia-smi finds no GPU."] };

let scene: Scene;
/** The machine's present stock, and how often it was read. */
let machine: { stock: Stock; looks: number };
let heard: HostFacts[];
beforeEach(async () => {
  scene = await Scene.open();
  machine = { stock: stockOf(gpu(0), gpu(1)), looks: 0 };
  heard = [];
});
afterEach(() => scene.close());

/** Takes stock as a server does: once before anything else, then in its loop. */
async function start(enforceGpus?: boolean): Promise<StockTaking> {
  const read = async () => {
    machine.looks++;
    return machine.stock;
  };
  const taking = new StockTaking(scene.parts, { read }, { location: undefined, enforceGpus });
  expect(taking.facts).toMatchObject({ gpus: [], gpusEnforced: enforceGpus ?? true });
  await taking.look();
  scene.run(taking.loop((facts) => void heard.push(facts)));
  await scene.settle();
  return taking;
}
const gpuEvents = () => scene.events.filter(({ type }) => type.startsWith("gpu."));

describe("A host with GPUs", () => {
  it("is checked once at the start, and reports its resources", async () => {
    const { facts } = await start();
    expect(facts).toMatchObject({ gpus: [gpu(0), gpu(1)], gpusEnforced: true, cpus: 8 });
    expect(gpuEvents()).toEqual([
      { type: "gpu.found", gpuId: "GPU-0", name: "NVIDIA L4", memoryMib: 23_034, driver: "550" },
      { type: "gpu.found", gpuId: "GPU-1", name: "NVIDIA L4", memoryMib: 23_034, driver: "550" },
    ]);
    expect([machine.looks, heard, scene.warnings()]).toEqual([1, [], []]);
  });

  it("is checked every few seconds, and reports nothing while nothing changes", async () => {
    await start();
    await scene.advance(10 * limits.stockMs);
    expect([machine.looks, heard]).toEqual([11, []]);
  });

  it("detects a GPU that fails, and a GPU that comes back", async () => {
    const taking = await start();
    scene.events.length = 0;
    machine.stock = { ...stockOf(gpu(1)), problems: ["GPU0000:05:00.0 cannot be reached (Unknown Error)."] };
    await scene.advance(limits.stockMs);
    expect(gpuEvents()).toEqual([
      {
        type: "gpu.lost",
        gpuId: "GPU-0",
        name: "NVIDIA L4",
        why: "GPU0000:05:00.0 cannot be reached (Unknown Error).",
      },
    ]);
    expect([heard.at(-1)?.gpus, taking.facts.gpus]).toEqual([[gpu(1)], [gpu(1)]]);
    machine.stock = stockOf(gpu(0), gpu(1));
    await scene.advance(limits.stockMs);
    expect(gpuEvents().at(-1)).toEqual({ type: "gpu.back", gpuId: "GPU-0", name: "NVIDIA L4" });
    expect([heard.length, heard.at(-1)?.gpus]).toEqual([2, [gpu(0), gpu(1)]]);
    expect(scene.warnings()).toEqual([]);
  });

  it("reports once what is wrong with a GPU that never worked", async () => {
    machine.stock = { ...stockOf(gpu(0)), problems: ["GPU 1 does not work."] };
    await start();
    await scene.advance(5 * limits.stockMs);
    expect(scene.warnings()).toEqual([{ type: "server.warning", message: "GPU 1 does not work." }]);
  });

  it("is checked as often after all GPUs have failed", async () => {
    await start();
    machine.stock = none;
    await scene.advance(10 * limits.stockMs);
    expect(machine.looks).toBe(11);
  });
});

describe("A host without GPUs", () => {
  const told = () => scene.events.filter(({ type }) => type === "gpu.none");

  it("says so once at the start, and enforces nothing", async () => {
    machine.stock = none;
    const { facts } = await start();
    await scene.advance(10 * limits.stockRareMs);
    expect(facts.gpusEnforced).toBe(false);
    const effect = expect.stringContaining("recorded, but not enforced");
    expect(told()).toEqual([
      { type: "gpu.none", effect, why: expect.stringContaining("nvidia-smi finds no GPU"), isMissed: false },
    ]);
  });

  it("is checked rarely", async () => {
    machine.stock = none;
    await start();
    await scene.advance(10 * limits.stockRareMs);
    expect(machine.looks).toBe(11);
  });

  it("is checked again when a worker has failed to start, but only once if many fail", async () => {
    machine.stock = none;
    const taking = await start();
    machine.stock = { ...none, cannotRun: ["image"] };
    const failed = { endpointId: "e", workerId: "w", failedStarts: 1, why: "no container engine answers" };
    for (let n = 0; n < 20; n++) taking.hear({ type: "worker.startFailed", ...failed });
    await scene.advance(limits.stockGapMs);
    expect([taking.facts.cannotRun, heard.length, machine.looks]).toEqual([["image"], 1, 2]);
  });

  it("says that workers wait if requirements are enforced", async () => {
    machine.stock = none;
    const { facts } = await start(true);
    expect(facts.gpusEnforced).toBe(true);
    expect(told()).toMatchObject([{ effect: expect.stringContaining("wait for one"), isMissed: true }]);
  });

  it("finds GPUs that are added", async () => {
    machine.stock = none;
    const taking = await start();
    machine.stock = stockOf(gpu(0));
    await scene.advance(limits.stockRareMs);
    expect(taking.facts).toMatchObject({ gpus: [gpu(0)], gpusEnforced: true });
    expect(heard).toHaveLength(1);
  });
});
