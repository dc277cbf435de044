import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { day, idsOf, type Scene, type Setting, startAt } from "./scene.js";

/** The treatment of a job when its ttl or retention is over. */
export function expiry(setting: () => Setting): void {
  describe("expiry", () => {
    let scene: Scene;
    let first: number;
    beforeEach(() => {
      ({ scene, first } = setting());
    });

    it("hides a job at once, and sweeps it later", async () => {
      const id = await scene.submit({ ttlEndAt: startAt + 10_000 });
      const { no, place } = await scene.job(id);
      scene.now = startAt + 9_999;
      expect(await scene.find(id)).toBeDefined();
      scene.now = startAt + 10_000;
      expect(await scene.find(id)).toBeUndefined();
      expect(
        (await scene.stores.reader.list({ endpointNo: scene.endpointNo, limit: 10, now: scene.now })).jobs,
      ).toEqual([]);
      expect(await scene.take(first)).toEqual([]);
      expect(await scene.stores.reader.nextExpiry()).toBe(startAt + 10_000);
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 })).toEqual({
        deleted: 1,
        stopped: [],
        more: false,
      });
      expect(await scene.stores.reader.submission(no)).toBeUndefined();
      expect(await scene.stores.reader.nextExpiry()).toBeUndefined();
      expect(await scene.tally()).toMatchObject({ waiting: 0, waitingNormal: 0 });
      expect(place).toBeLessThanOrEqual(await scene.stores.reader.lastPlace());
    });

    it("looks past expired jobs for a job that still waits", async () => {
      await scene.submit({ ttlEndAt: startAt + 10_000 });
      const id = await scene.submit();
      scene.now += 10_000;
      expect(idsOf(await scene.take(first))).toEqual([id]);
    });

    it("stops a running job, drops its late result, and deletes it when its worker has stopped", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first, {
        ttlEndAt: startAt + 10_000,
        webhook: "https://example.com/hook",
      });
      scene.now += 10_000;
      expect(await scene.settle(id, first)).toBeUndefined();
      const { deleted, stopped } = await scene.stores.jobs.sweep({ now: scene.now, limit: 10 });
      expect([deleted, idsOf(stopped), stopped[0]?.workerNo]).toEqual([0, [id], first]);
      expect(idsOf(await scene.stores.reader.heldBy(first))).toEqual([id]);
      expect(await scene.find(id)).toBeUndefined();
      expect(await scene.tally()).toMatchObject({ running: 0 });
      await scene.stores.jobs.confirmStopped({ workerNo: first, jobNos: [stopped[0]!.no] });
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 })).toMatchObject({ deleted: 1 });
      expect(await scene.deliveries()).toEqual([]);
    });

    it("sweeps a job of very many chunks in several steps, and others meanwhile", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first, { ttlEndAt: startAt + 10_000 });
      const { no } = await scene.job(id);
      await scene.append(id, first, ...Array.from({ length: limits.chunksTrimmedAtOnce + 10 }, (_, n) => `${n}`));
      await scene.settle(id, first);
      const left = async () =>
        (await scene.stores.chunks.read({ jobNo: no, fromIndex: limits.chunksTrimmedAtOnce, bytesMax: 1_000 })).length;
      scene.now += 10_000;
      const sweep = () => scene.stores.jobs.sweep({ now: scene.now, limit: 10 });
      expect(await sweep()).toMatchObject({ deleted: 0, more: true });
      expect([await left(), await scene.find(id)]).toEqual([10, undefined]);
      expect(await sweep()).toMatchObject({ deleted: 1, more: false });
      expect(await left()).toBe(0);
    });

    it("sweeps in batches, the oldest first, and says whether there are more", async () => {
      for (const n of [3, 1, 2]) await scene.submit({ id: `old-${n}`, ttlEndAt: startAt + n * 1_000 });
      scene.now += 3_000;
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 2 })).toMatchObject({ deleted: 2, more: true });
      expect(await scene.stores.reader.nextExpiry()).toBe(startAt + 3_000);
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 2 })).toMatchObject({ deleted: 1, more: false });
    });

    it("forgets idempotency keys in batches, too, and says whether there are more", async () => {
      const due = scene.now + 1_000;
      for (let n = 0; n < 3; n++) {
        const idempotency = { keyHash: `key-${n}`, bodyHash: "b", route: "run" as const, expiresAt: due };
        await scene.submit({ idempotency, ttlEndAt: startAt + day });
      }
      scene.now = due;
      const sweep = () => scene.stores.jobs.sweep({ now: scene.now, limit: 2 });
      expect(await sweep()).toMatchObject({ deleted: 0, more: true });
      expect(await sweep()).toMatchObject({ deleted: 0, more: false });
    });

    it("keeps a job while its webhook is still to be delivered", async () => {
      const id = await scene.jobIn("COMPLETED", first, { webhook: "https://example.com/hook", retentionMs: 60_000 });
      scene.now += 60_000;
      expect(await scene.find(id)).toBeUndefined();
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 })).toMatchObject({ deleted: 0 });
      expect(await scene.stores.reader.nextExpiry()).toBeUndefined();
      const [delivery] = await scene.deliveries();
      const attempt = { at: scene.now, status: 200, error: undefined, durationMs: 5 };
      const { deliveries } = scene.stores;
      await deliveries.record({
        deliveryNo: delivery!.no,
        attempt: { ...attempt, status: 500 },
        outcome: { state: "pending", nextAt: scene.now + 1 },
      });
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 })).toMatchObject({ deleted: 0 });
      scene.now++;
      await deliveries.record({
        deliveryNo: delivery!.no,
        attempt: { ...attempt, at: scene.now },
        outcome: { state: "delivered" },
      });
      expect(await scene.stores.reader.nextExpiry()).toBe(scene.now - 1);
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 })).toMatchObject({ deleted: 1 });
    });

    it("sweeps a job that was retried just before a sweep kept it for its webhook", async () => {
      const hooked = { webhook: "https://example.com/hook", retentionMs: 60_000 };
      const id = await scene.jobIn("FAILED", first, hooked);
      const read = await scene.job(id);
      expect(await scene.stores.jobs.sweep({ now: scene.now + 60_000, limit: 10 })).toMatchObject({ deleted: 0 });
      expect(
        await scene.stores.jobs.change({ job: read, change: { by: "retry" }, now: scene.now + 59_999 }),
      ).toMatchObject({ id });
      scene.now += day;
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 10 })).toMatchObject({ deleted: 1 });
      expect(await scene.tally()).toMatchObject({ waiting: 0 });
    });

    it("follows a ttl that was changed", async () => {
      const id = await scene.submit();
      const job = await scene.job(id);
      expect(await scene.stores.jobs.setTtl({ job, ttlEndAt: startAt + 20_000, now: scene.now })).toBe(true);
      expect((await scene.job(id)).expiresAt).toBe(startAt + 20_000);
      await scene.takeOne(first);
      await scene.settle(id, first);
      expect(await scene.stores.jobs.setTtl({ job, ttlEndAt: startAt + 2 * day, now: scene.now })).toBe(true);
      expect((await scene.job(id)).expiresAt).toBe(startAt + limits.runRetentionMs);
      expect(await scene.stores.jobs.setTtl({ job, ttlEndAt: startAt - 1, now: scene.now })).toBe(true);
      expect(await scene.find(id)).toBeUndefined();
      expect(await scene.stores.jobs.setTtl({ job, ttlEndAt: startAt + day, now: scene.now })).toBe(false);
    });

    it.each(["IN_QUEUE", "IN_PROGRESS"] as const)(
      "no longer counts a job %s whose ttl was set to the past",
      async (status) => {
        const job = await scene.job(await scene.jobIn(status, first));
        expect(await scene.tally()).toMatchObject(status === "IN_QUEUE" ? { waiting: 1 } : { running: 1 });
        await scene.stores.jobs.setTtl({ job, ttlEndAt: startAt - 1, now: scene.now });
        await scene.stores.jobs.sweep({ now: scene.now, limit: 10 });
        expect(await scene.tally()).toMatchObject({ waiting: 0, running: 0 });
      },
    );

    it("cannot be undone by a retry", async () => {
      const id = await scene.jobIn("FAILED", first, { retentionMs: 60_000 });
      const read = await scene.job(id);
      scene.now += 60_000;
      expect(await scene.stores.jobs.change({ job: read, change: { by: "retry" }, now: scene.now })).toBeUndefined();
    });
  });
}
