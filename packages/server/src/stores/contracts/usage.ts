import { describe, expect, it } from "vitest";
import { noPrices } from "../../domain/usage/price.js";
import type { Deposit, UsageQuery } from "../../store/index.js";
import type { Setting } from "./scene.js";

const hour = Date.UTC(2026, 4, 31, 23);
const plain: Deposit = {
  kind: "endpoint",
  no: 1,
  ownerNo: 7,
  resource: "endpoint",
  gpuType: "NVIDIA L4",
  before: undefined,
  mark: { amount: 60_000, at: hour + 60_000 },
  shares: [{ at: hour, amount: 60_000, gpuCost: 5_000_000_000_000, cpuCost: 2, diskCost: 3 }],
};
const month = (at: number) => Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth());
const may: UsageQuery = {
  kind: "endpoint",
  ownerNo: 7,
  stretches: [{ bucket: 0, span: "month", from: month(hour), to: hour + 1 }],
  byResource: true,
  limit: 10,
};

/** What has been used, and what it costs. */
export function usage(setting: () => Setting): void {
  describe("usage", () => {
    it("is added up by hour, day and month, by resource and together", async () => {
      const { usage } = setting().scene.stores;
      const next = hour + 3_600_000; // the first of June
      await usage.bank([
        plain,
        { ...plain, no: 2, resource: "other" },
        { ...plain, no: 3, shares: [plain.shares[0]!, { ...plain.shares[0]!, at: next }] },
        { ...plain, no: 4, ownerNo: 8 },
      ]);
      const [gpuCost, sum] = [10_000_000_000_000, { bucket: 0, gpuType: "NVIDIA L4", cpuCost: 4, diskCost: 6 }];
      const own = { ...sum, resource: "endpoint", amount: 120_000, gpuCost };
      const others = { ...sum, resource: "other", amount: 60_000, gpuCost: gpuCost / 2, cpuCost: 2, diskCost: 3 };
      expect(await usage.sums(may)).toEqual([own, others]);
      expect(await usage.sums({ ...may, resource: "other" })).toEqual([others]);
      expect(await usage.sums({ ...may, byResource: false })).toMatchObject([{ resource: "", amount: 180_000 }]);
      const stretch = (span: "hour" | "day", from: number, to: number, bucket = 0) => ({ bucket, span, from, to });
      const ofDay = { ...may, stretches: [stretch("day", next, next + 86_400_000)] };
      expect(await usage.sums(ofDay)).toMatchObject([{ resource: "endpoint", amount: 60_000 }]);
      const both = [stretch("hour", hour, next), stretch("day", next, next + 86_400_000)];
      expect(await usage.sums({ ...may, byResource: false, stretches: both })).toMatchObject([{ amount: 240_000 }]);
      const taken = [...both.slice(0, 1), { ...stretch("hour", hour, next), isTaken: true as const }];
      expect(await usage.sums({ ...may, stretches: taken })).toEqual([]);
      const two = [stretch("hour", hour, next), stretch("day", next, next + 86_400_000, 1)];
      expect(await usage.sums({ ...may, byResource: false, stretches: two })).toMatchObject([
        { bucket: 0, amount: 180_000 },
        { bucket: 1, amount: 60_000 },
      ]);
      expect(await usage.sums({ ...may, limit: 0 })).toHaveLength(1); // one more than asked, to tell that there are more
    });

    it("is counted once, however often and by whoever it is banked", async () => {
      const { usage } = setting().scene.stores;
      const deposit = { ...plain, no: 10, ownerNo: 10 };
      await Promise.all([usage.bank([deposit]), usage.bank([deposit]), usage.bank([deposit])]);
      const next = { ...deposit, before: 60_000, mark: { amount: 120_000, at: hour + 120_000 } };
      await Promise.all([usage.bank([next]), usage.bank([next]), usage.bank([deposit])]);
      expect(await usage.sums({ ...may, ownerNo: 10 })).toMatchObject([{ amount: 120_000 }]);
      expect(await usage.marks("worker", [10, 11])).toEqual(new Map([[10, next.mark]]));
    });

    it("of a volume and of a worker with the same number are two", async () => {
      const { usage } = setting().scene.stores;
      await usage.bank([
        { ...plain, no: 20, ownerNo: 20 },
        { ...plain, no: 20, ownerNo: 20, kind: "volume" },
      ]);
      expect((await usage.marks("volume", [20])).size + (await usage.marks("worker", [20])).size).toBe(2);
      expect(await usage.sums({ ...may, ownerNo: 20, kind: "volume" })).toMatchObject([{ amount: 60_000 }]);
    });

    it("forgets old marks of what is gone, a few at a time", async () => {
      const { scene } = setting();
      const { usage, volumes } = scene.stores;
      const gone = 9_000_000;
      const bank = (kind: "endpoint" | "volume", no: number, at: number) =>
        usage.bank([{ ...plain, kind, no, ownerNo: 30, mark: { amount: 1, at } }]);
      for (const n of [0, 1, 2]) await bank("endpoint", gone + n, 30 + n);
      const worker = await scene.worker("marked");
      const owned = { id: "volume00000030", ownerNo: 30, name: "v", size: 1, dataCenterId: "", sizedAt: 1, gbMs: 0 };
      const volume = await volumes.create(owned);
      await bank("endpoint", worker, 1);
      await bank("volume", volume.no, 1);
      expect(await usage.forgetMarks(32, 1)).toBe(1);
      expect(await usage.forgetMarks(32, 10)).toBe(1);
      const kept = await usage.marks("worker", [gone, gone + 1, gone + 2, worker]);
      expect([...kept.keys()].toSorted((a, b) => a - b)).toEqual([worker, gone + 2]);
      expect((await usage.marks("volume", [volume.no])).size).toBe(1);
    });

    it("of a deleted volume is kept until it is banked", async () => {
      const { usage, volumes } = setting().scene.stores;
      const made = { id: "volume00000040", ownerNo: 40, name: "v", size: 2, dataCenterId: "", sizedAt: 5, gbMs: 7 };
      const volume = await volumes.create(made);
      expect(volume).toMatchObject(made);
      await volumes.save({ ...volume, size: 3, sizedAt: 9, gbMs: 15 });
      expect((await volumes.all()).find(({ id }) => id === made.id)).toMatchObject({ size: 3, sizedAt: 9, gbMs: 15 });
      await volumes.remove(volume, { gbMs: 30, endedAt: 14 });
      const ended = { no: volume.no, id: made.id, ownerNo: 40, gbMs: 30, endedAt: 14 };
      expect(await usage.endedVolumes(10)).toContainEqual(ended);
      await usage.forgetEndedVolumes([volume.no]);
      expect(await usage.endedVolumes(10)).not.toContainEqual(ended);
    });

    it("has prices, which are replaced as a whole", async () => {
      const { usage } = setting().scene.stores;
      expect(await usage.prices()).toEqual(noPrices);
      const prices = { gpus: { "NVIDIA L4": 440_000_000, "NVIDIA A40": 1 }, vcpu: 2, memoryGb: 3, volumeGb: 4 };
      await usage.savePrices(prices);
      expect(await usage.prices()).toEqual(prices);
      await usage.savePrices({ ...noPrices, gpus: { "NVIDIA A40": 2 } });
      expect(await usage.prices()).toEqual({ ...noPrices, gpus: { "NVIDIA A40": 2 } });
    });
  });
}
