import { beforeEach, describe, expect, it } from "vitest";
import { workerChanges } from "../../testing/facts-fixture.js";
import { completed, failed, idsOf, type Scene, type Setting } from "./scene.js";

/** Only the worker that holds a job may write to it. */
export function holderGuard(setting: () => Setting): void {
  describe("the holder's guard", () => {
    let scene: Scene;
    let first: number;
    let second: number;
    beforeEach(() => {
      ({ scene, first, second } = setting());
    });

    it("drops every report of a worker that lost its job", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      await scene.change(id, { by: "giveBack", excused: false });
      await scene.takeOne(second);
      expect(await scene.settle(id, first, completed('"late"'))).toBeUndefined();
      expect(
        await scene.stores.jobs.progress({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo: first,
          progress: '"late"',
        }),
      ).toBe(false);
      expect(await scene.append(id, first, '"late"')).toBe(false);
      expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", workerNo: second, progress: undefined });
      expect(await scene.settle(id, second, completed('"mine"'))).toMatchObject({ status: "COMPLETED" });
      expect((await scene.job(id)).output).toBe('"mine"');
    });

    it("lets one of two simultaneous ends win", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const job = await scene.job(id);
      const [cancelled, done] = await Promise.all([
        scene.stores.jobs.change({ job, change: { by: "cancel" }, now: scene.now }),
        scene.settle(id, first, completed("1")),
      ]);
      expect([cancelled, done].filter(Boolean)).toHaveLength(1);
      expect((await scene.job(id)).status).toBe((cancelled ?? done)?.status);
      expect(await scene.tally()).toMatchObject({ running: 0, completed: done ? 1 : 0 });
    });

    it("applies a change only to the start that was read", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const read = await scene.job(id);
      await scene.change(id, { by: "giveBack", excused: false });
      await scene.takeOne(second);
      for (const by of ["timeOut", "fail"] as const) {
        expect(
          await scene.stores.jobs.change({ job: read, change: { by, error: "stale" }, now: scene.now }),
        ).toBeUndefined();
      }
      expect(
        await scene.stores.jobs.change({ job: read, change: { by: "giveBack", excused: false }, now: scene.now }),
      ).toBeUndefined();
      expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", workerNo: second, starts: 2 });
    });

    it("applies a change only to the start that was read, even if the same worker has the job again", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const read = await scene.job(id);
      await scene.change(id, { by: "giveBack", excused: false });
      await scene.takeOne(first);
      for (const change of [
        { by: "giveBack", excused: false },
        { by: "timeOut", error: "stale" },
        { by: "fail", error: "stale" },
      ] as const) {
        expect(await scene.stores.jobs.change({ job: read, change, now: scene.now })).toBeUndefined();
      }
      expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", workerNo: first, starts: 2, retries: 1 });
    });

    it("applies a change only while the worker that was read holds the job", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      const read = await scene.job(id);
      await scene.settle(id, first, failed("it broke"));
      await scene.change(id, { by: "retry" });
      await scene.takeOne(second);
      // the same state and the same number of starts, but another worker
      expect(
        await scene.stores.jobs.change({ job: read, change: { by: "timeOut", error: "stale" }, now: scene.now }),
      ).toBeUndefined();
      expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", workerNo: second });
    });

    it("records the beginning only for the start that was read, while it runs", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first, { executionTimeoutMs: 9_000 });
      const read = { ...(await scene.job(id)), workerNo: first };
      await scene.stores.jobs.begin({ job: read, beganAt: scene.now + 10, beginsBy: scene.now + 20 });
      expect(await scene.job(id)).toMatchObject({ takenAt: scene.now + 10, deadlineAt: scene.now + 9_020 });
      await scene.stores.jobs.begin({ job: { ...read, workerNo: second }, beganAt: scene.now, beginsBy: scene.now });
      await scene.stores.jobs.begin({ job: { ...read, starts: 2 }, beganAt: scene.now, beginsBy: scene.now });
      expect(await scene.job(id)).toMatchObject({ takenAt: scene.now + 10, deadlineAt: scene.now + 9_020 });
      scene.now += 1_010;
      expect(await scene.settle(id, first)).toMatchObject({ delayMs: 10, executionMs: 1_000 });
      await scene.stores.jobs.begin({ job: read, beganAt: scene.now, beginsBy: scene.now });
      expect(await scene.job(id)).toMatchObject({ deadlineAt: undefined, takenAt: scene.now - 1_000 });
    });

    it("takes a worker's final result for a stopped job only as the confirmation of its stop", async () => {
      const id = await scene.jobIn("CANCELLED", first);
      expect(await scene.settle(id, second, completed("1"))).toBeUndefined();
      expect((await scene.job(id)).stopWanted).toBe(true);
      expect(await scene.settle(id, first, completed("1"))).toBeUndefined();
      expect(await scene.job(id)).toMatchObject({ status: "CANCELLED", stopWanted: false, output: undefined });
    });

    it("clears a stop only for the worker it was meant for", async () => {
      const id = await scene.jobIn("CANCELLED", first);
      const { no } = await scene.job(id);
      await scene.stores.jobs.confirmStopped({ workerNo: second, jobNos: [no] });
      expect(idsOf(await scene.stores.reader.heldBy(first))).toEqual([id]);
      await scene.stores.jobs.confirmStopped({ workerNo: first, jobNos: [no] });
      expect(await scene.stores.reader.heldBy(first)).toEqual([]);
    });

    it("lists running jobs whose worker has ended, and no others", async () => {
      const [lost] = [await scene.jobIn("IN_PROGRESS", first), await scene.jobIn("IN_PROGRESS", second)];
      expect(await scene.stores.reader.orphaned()).toEqual([]);
      await scene.stores.workers.change(first, { ...workerChanges.end, endedAt: scene.now });
      expect(idsOf(await scene.stores.reader.orphaned())).toEqual([lost]);
    });

    it("lists nothing to stop for a worker that has ended", async () => {
      await scene.jobIn("CANCELLED", first);
      await scene.stores.workers.change(first, { ...workerChanges.end, endedAt: scene.now });
      expect(await scene.stores.reader.unstopped()).toEqual([]);
    });
  });
}
