import { beforeEach, describe, expect, it } from "vitest";
import type { JobStatus } from "../../domain/jobs/job.js";
import { completed, failed, idsOf, type Scene, type Setting, startAt } from "./scene.js";

/** The results of reads of jobs and tallies. */
export function reads(setting: () => Setting): void {
  describe("reads", () => {
    let scene: Scene;
    let first: number;
    let second: number;
    beforeEach(() => {
      ({ scene, first, second } = setting());
    });

    it("list the newest first, by state, page by page", async () => {
      const ids = await scene.submitMany(4);
      const taken = idsOf(await scene.take(first, 2));
      const list = async (query: { status?: JobStatus; beforeNo?: number }) =>
        await scene.stores.reader.list({ endpointNo: scene.endpointNo, limit: 3, ...query, now: scene.now });
      const page = await list({});
      expect([idsOf(page.jobs), page.more]).toEqual([ids.slice(1).reverse(), true]);
      const rest = await list({ beforeNo: page.jobs[2]!.no });
      expect([idsOf(rest.jobs), rest.more]).toEqual([[ids[0]], false]);
      expect(idsOf((await list({ status: "IN_PROGRESS" })).jobs)).toEqual(taken.reverse());
      expect(await list({ status: "FAILED" })).toEqual({ jobs: [], more: false });
    });

    it.each(["COMPLETED", "FAILED", undefined] as const)(
      "list at least one job, and no more bytes than fit: %s",
      async (status) => {
        const ids = await scene.submitMany(4);
        await scene.take(first, 4);
        // characters of two bytes: the limit is in bytes, not characters
        const text = `"${"ü".repeat(499)}"`;
        for (const id of ids)
          await scene.settle(id, first, status === "FAILED" ? failed("ü".repeat(499)) : completed(text));
        const list = (bytesMax: number, beforeNo?: number) =>
          scene.stores.reader.list({
            endpointNo: scene.endpointNo,
            limit: 50,
            bytesMax,
            ...(status && { status }),
            ...(beforeNo && { beforeNo }),
            now: scene.now,
          });
        const two = await list(2_000);
        expect([idsOf(two.jobs), two.more]).toEqual([[ids[3], ids[2]], true]);
        const one = await list(1_999, two.jobs[1]!.no);
        expect([idsOf(one.jobs), one.more]).toEqual([[ids[1]], true]);
        const last = await list(1, one.jobs[0]!.no);
        expect([idsOf(last.jobs), last.more]).toEqual([[ids[0]], false]);
        expect((await list(4_000)).jobs.map(({ output, error }) => output ?? JSON.stringify(error))).toEqual(
          ids.map(() => text),
        );
      },
    );

    it("tell what happened to a job, oldest first, and when the newest jobs came, were taken and ended", async () => {
      const jobId = await scene.submit();
      const { no } = await scene.job(jobId);
      expect(await scene.stores.reader.happened(no)).toEqual([]);
      await scene.takeOne(first);
      scene.now += 1_000;
      await scene.change(jobId, { by: "giveBack", excused: false });
      scene.now += 1_000;
      await scene.takeOne(first);
      await scene.change(jobId, { by: "fail", error: "lost" });
      await scene.change(jobId, { by: "retry" });
      const worker = expect.any(String);
      expect(await scene.stores.reader.happened(no)).toEqual([
        { at: startAt + 1_000, event: "giveBack", workerId: worker },
        { at: startAt + 2_000, event: "fail", workerId: worker, note: "lost" },
        { at: startAt + 2_000, event: "retry", workerId: worker },
      ]);
      const later = await scene.submit();
      await scene.take(first, 2);
      await scene.settle(later, first, failed("broken"));
      await scene.submit(); // nobody has taken it
      const recent = { endpointNo: scene.endpointNo, limit: 10, now: scene.now };
      expect(await scene.stores.reader.recent(recent)).toEqual([
        { status: "FAILED", queuedAt: scene.now, takenAt: scene.now, finishedAt: scene.now },
        { status: "IN_PROGRESS", queuedAt: scene.now, takenAt: scene.now, finishedAt: undefined },
      ]);
      expect(await scene.stores.reader.recent({ ...recent, limit: 1 })).toHaveLength(1);
      expect(await scene.stores.reader.recent({ ...recent, endpointNo: scene.endpointNo + 1 })).toEqual([]);
      expect(await scene.stores.reader.recent({ ...recent, now: scene.now + 8 * 24 * 3_600_000 })).toEqual([]);
    });

    it("find overdue jobs, the longest first, and when to look next", async () => {
      const slow = await scene.submit({ executionTimeoutMs: 9_000 });
      const fast = await scene.submit({ executionTimeoutMs: 5_000 });
      await scene.take(first, 2);
      expect(await scene.stores.reader.nextDeadline()).toBe(startAt + 5_000);
      expect(await scene.stores.reader.overdue({ now: startAt + 4_999, limit: 10 })).toEqual([]);
      expect(idsOf(await scene.stores.reader.overdue({ now: startAt + 5_000, limit: 10 }))).toEqual([fast]);
      expect(idsOf(await scene.stores.reader.overdue({ now: startAt + 9_000, limit: 10 }))).toEqual([fast, slow]);
      expect(idsOf(await scene.stores.reader.overdue({ now: startAt + 9_000, limit: 1 }))).toEqual([fast]);
    });

    it("count the jobs before a place, up to a bound", async () => {
      const ids = await scene.submitMany(5);
      const { place } = await scene.job(ids[3]!);
      expect(await scene.stores.reader.position({ endpointNo: scene.endpointNo, place, max: 100 })).toBe(3);
      expect(await scene.stores.reader.position({ endpointNo: scene.endpointNo, place, max: 2 })).toBe(2);
    });

    it("count for many jobs and endpoints at once, each for itself", async () => {
      const other = await scene.endpoint("endpoint000002");
      const ids = await scene.submitMany(3);
      const places = await Promise.all(ids.map(async (id) => (await scene.job(id)).place));
      const { reader, tallies } = scene.stores;
      const positions = places.map((place) => reader.position({ endpointNo: scene.endpointNo, place, max: 100 }));
      expect(
        await Promise.all([...positions, reader.position({ endpointNo: other, place: places[2]!, max: 100 })]),
      ).toEqual([0, 1, 2, 0]);
      await scene.take(first);
      const { endpointNo } = scene;
      const [held, same, none] = await Promise.all([endpointNo, endpointNo, other].map((no) => tallies.holdings(no)));
      expect([held?.get(first), same?.get(first), none?.size]).toEqual([1, 1, 0]);
    });

    it("return when the oldest normal job began to wait", async () => {
      await scene.submit({ lowPriority: true });
      expect(await scene.stores.tallies.oldestWaiting(scene.endpointNo)).toBeUndefined();
      scene.now += 1_000;
      await scene.submit();
      scene.now += 1_000;
      await scene.submit();
      expect(await scene.stores.tallies.oldestWaiting(scene.endpointNo)).toBe(startAt + 1_000);
    });

    it("add up the waiting jobs of several endpoints", async () => {
      const other = await scene.endpoint("endpoint000002");
      await scene.submitMany(3);
      await scene.submitMany(2, { endpointNo: other });
      await scene.take(first);
      const { tallies } = scene.stores;
      expect(await tallies.waiting([scene.endpointNo, other])).toBe(4);
      expect([await tallies.waiting([other]), await tallies.waiting([])]).toEqual([2, 0]);
    });

    it("count the jobs that each live worker holds", async () => {
      await scene.submitMany(3);
      await scene.take(first, 3);
      expect(await scene.stores.tallies.holdings(scene.endpointNo)).toEqual(
        new Map([
          [first, 3],
          [second, 0],
        ]),
      );
    });
  });
}
