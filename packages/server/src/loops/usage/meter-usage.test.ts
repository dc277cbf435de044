import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { nanoPerUnit } from "../../domain/usage/price.js";
import { limits } from "../../limits/index.js";
import { createPod } from "../../operations/pods/save-pod.js";
import { createVolume, deleteVolume, updateVolume } from "../../operations/volumes/save-volume.js";
import { pauseWorker, resumeWorker } from "../../operations/workers/worker-life.js";
import type { MeteredKind } from "../../store/index.js";
import { Scene } from "../../testing/scene-fixture.js";
import { meterUsageLoop } from "./meter-usage.js";

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

const day = 24 * 3_600_000;
const month = () => {
  const at = scene.clock.now();
  return [{ bucket: 0, span: "month" as const, from: at - 400 * day, to: at + 40 * day }];
};
const sumsOf = (kind: MeteredKind, ownerNo = scene.admin.ownerNo) =>
  scene.stores.usage.sums({ kind, ownerNo, stretches: month(), byResource: true, limit: 100 });
const amountOf = async (kind: MeteredKind) => (await sumsOf(kind)).reduce((sum, { amount }) => sum + amount, 0);
const tick = () => meterUsageLoop(scene.parts).tick(scene.clock.now(), new AbortController().signal);
const second = 1_000;

describe("Usage", () => {
  it("of a worker is counted from its start to its end, once a minute and once more after it", async () => {
    scene.run(meterUsageLoop(scene.parts));
    const worker = await scene.worker(endpoint);
    await scene.advance(90 * second);
    expect(await amountOf("endpoint")).toBe(60 * second);
    await scene.parts.registry.changeWorker(worker, { by: "end", endedAt: scene.clock.now(), exit: {} });
    await scene.advance(10 * 60 * second);
    expect(await sumsOf("endpoint")).toMatchObject([{ resource: endpoint.id, amount: 90 * second, gpuCost: 0 }]);
  });

  it("leaves out the time in which a worker is paused, however short", async () => {
    const worker = await scene.worker(endpoint);
    await scene.parts.registry.changeWorker(worker, { by: "ready", readyAt: scene.clock.now() });
    for (let n = 0; n < 3; n++) {
      await scene.advance(10 * second);
      await pauseWorker(scene.parts, worker, "a test");
      await scene.advance(7 * second);
      await resumeWorker(scene.parts, worker, "a test");
    }
    await tick();
    expect(await amountOf("endpoint")).toBe(30 * second);
    expect((await scene.stores.workers.find(worker.row.id))?.pausedMs).toBe(21 * second);
  });

  it("of a pod is the pod's own, and has no discount", async () => {
    const registry = scene.parts.registry;
    await registry.prices.save({ gpus: {}, vcpu: nanoPerUnit, memoryGb: 0, volumeGb: 0 });
    await registry.saveUser({ ...registry.user(scene.admin.ownerNo)!, terms: { serverlessDiscount: 0.5 } });
    const settings = { computeType: "CPU" as const, vcpuCount: 2 };
    const pod = await createPod(scene.parts, scene.admin, {
      ...settings,
      imageName: scene.directory,
      dockerStartCmd: ["sleep", "infinity"],
    });
    await scene.runAll();
    await scene.advance(second);
    const cpu = await scene.endpoint({ ...settings, workersMin: 1 });
    await scene.advance(second);
    await scene.advance(3_600_000);
    await tick();
    const costOfAnHour = async (kind: "pod" | "endpoint") => {
      const [sum] = await sumsOf(kind);
      return Math.round((sum!.cpuCost * 3_600_000) / sum!.amount / 1_000) / 1_000_000;
    };
    expect([await costOfAnHour("pod"), await costOfAnHour("endpoint")]).toEqual([2, 1]);
    expect([(await sumsOf("pod"))[0]?.resource, (await sumsOf("endpoint"))[0]?.resource]).toEqual([pod.id, cpu.id]);
  });

  it("of a volume is each size for its time, to the moment of its deletion", async () => {
    await scene.parts.registry.prices.save({ gpus: {}, vcpu: 0, memoryGb: 0, volumeGb: nanoPerUnit });
    const volume = await createVolume(scene.parts, scene.admin, { name: "v", size: 10, dataCenterId: "here" });
    await scene.advance(30 * second);
    await updateVolume(scene.parts, scene.admin, volume, { size: 20 });
    await scene.advance(15 * second);
    await tick();
    await scene.advance(15 * second);
    await deleteVolume(scene.parts, scene.admin, volume.id);
    await scene.advance(100 * second);
    await tick();
    await tick();
    const [sum] = await sumsOf("volume");
    expect(sum).toMatchObject({ resource: volume.id, amount: (10 * 30 + 20 * 30) * second });
    expect(sum?.diskCost).toBe(((10 * 30 + 20 * 30) / 3_600) * nanoPerUnit);
    expect(await scene.stores.usage.endedVolumes(10)).toEqual([]);
  });

  it("that is worked out by two servers at once, or by one that dies, is counted once", async () => {
    await scene.worker(endpoint);
    await scene.advance(20 * second);
    await Promise.all([tick(), tick(), tick()]);
    expect(await amountOf("endpoint")).toBe(20 * second);
    await scene.advance(20 * second);
    scene.during("usage.bank", () => void tick());
    await tick();
    await scene.settle();
    expect(await amountOf("endpoint")).toBe(40 * second);
  });

  it("follows the model, whatever happens to workers and servers", { timeout: 120_000 }, async () => {
    let runs = 0;
    const act = fc.oneof(
      fc.record({ do: fc.constantFrom("start", "pause", "resume", "end", "tick", "kill" as const), n: fc.nat(3) }),
      fc.record({ do: fc.constant("wait" as const), n: fc.integer({ min: 1, max: 200_000 }) }),
      fc.record({ do: fc.constant("wait" as const), n: fc.constant(limits.usageMarksKeptMs + second) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
        const template = await scene.template({ name: `model ${runs++}` }); // names outlive a restart
        const own = await scene.endpoint({ templateId: template.id });
        /** When each worker started, and for how long it has been paused. */
        const model: { id: string; startedAt: number; paused: number; pausedAt?: number; endedAt?: number }[] = [];
        const live = (n: number) => model.filter(({ endedAt }) => endedAt === undefined)[n];
        for (const { do: what, n } of acts) {
          const now = scene.clock.now();
          const entry = live(n);
          const worker = entry && scene.parts.registry.worker(entry.id);
          if (what === "wait") await scene.advance(n);
          else if (what === "tick") await tick();
          else if (what === "kill") scene = await scene.restart();
          else if (what === "start") {
            const made = await scene.worker(own);
            await scene.parts.registry.changeWorker(made, { by: "ready", readyAt: now });
            model.push({ id: made.row.id, startedAt: now, paused: 0 });
          } else if (entry && worker) {
            if (what === "pause" && entry.pausedAt === undefined) {
              await pauseWorker(scene.parts, worker, "");
              entry.pausedAt = worker.row.pausedAt ?? now;
            } else if (what === "resume" && entry.pausedAt !== undefined) {
              await resumeWorker(scene.parts, worker, "");
              entry.paused += (worker.row.resumedAt ?? now) - entry.pausedAt;
              entry.pausedAt = undefined as never;
            } else if (what === "end") {
              await scene.parts.registry.changeWorker(worker, { by: "end", endedAt: now, exit: {} });
              entry.endedAt = now;
            }
          }
        }
        await tick();
        await tick(); // the first may have forgotten a mark
        const until = scene.clock.now();
        const expected = model.reduce((sum, { startedAt, paused, pausedAt, endedAt }) => {
          return sum + Math.max(0, Math.min(endedAt ?? until, pausedAt ?? until) - startedAt - paused);
        }, 0);
        const sums = await sumsOf("endpoint");
        const got = sums.filter(({ resource }) => resource === own.id).reduce((sum, { amount }) => sum + amount, 0);
        expect(got).toBe(expected);
      }),
      { numRuns: 40 },
    );
  });

  it("of a worker that is paused for days is not counted again", async () => {
    const worker = await scene.worker(endpoint);
    await scene.parts.registry.changeWorker(worker, { by: "ready", readyAt: scene.clock.now() });
    await scene.advance(second);
    await pauseWorker(scene.parts, worker, "a test");
    await tick();
    await scene.advance(limits.usageMarksKeptMs + second);
    await tick();
    await tick();
    expect(await amountOf("endpoint")).toBe(second);
  });

  it("marks are forgotten long after what they were for", async () => {
    const worker = await scene.worker(endpoint);
    await scene.advance(second);
    await tick();
    const { no } = worker.row;
    await scene.parts.registry.changeWorker(worker, { by: "end", endedAt: scene.clock.now(), exit: {} });
    expect((await scene.stores.usage.marks("worker", [no])).size).toBe(1);
    await scene.parts.registry.forgetWorkers(scene.clock.now());
    await scene.advance(limits.usageMarksKeptMs + second);
    await tick();
    expect((await scene.stores.usage.marks("worker", [no])).size).toBe(0);
    expect(await amountOf("endpoint")).toBe(second);
  });
});
