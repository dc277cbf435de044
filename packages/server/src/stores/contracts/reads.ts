import { beforeEach, describe, expect, it } from "vitest";
import type { JobStatus } from "../../domain/job.js";
import { idsOf, type Scene, type Setting, startAt } from "./scene.js";

/** What the readers of jobs and tallies tell. */
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
        await scene.stores.reader.list(scene.endpointNo, { limit: 3, ...query }, scene.now);
      const page = await list({});
      expect(idsOf(page)).toEqual(ids.slice(1).reverse());
      expect(idsOf(await list({ beforeNo: page[2]!.no }))).toEqual([ids[0]]);
      expect(idsOf(await list({ status: "IN_PROGRESS" }))).toEqual(taken.reverse());
      expect(await list({ status: "FAILED" })).toEqual([]);
    });

    it("find what is overdue, the longest first, and when to look next", async () => {
      const slow = await scene.submit({ executionTimeoutMs: 9_000 });
      const fast = await scene.submit({ executionTimeoutMs: 5_000 });
      await scene.take(first, 2);
      expect(await scene.stores.reader.nextDeadline()).toBe(startAt + 5_000);
      expect(await scene.stores.reader.overdue(startAt + 4_999, 10)).toEqual([]);
      expect(idsOf(await scene.stores.reader.overdue(startAt + 5_000, 10))).toEqual([fast]);
      expect(idsOf(await scene.stores.reader.overdue(startAt + 9_000, 10))).toEqual([fast, slow]);
      expect(idsOf(await scene.stores.reader.overdue(startAt + 9_000, 1))).toEqual([fast]);
    });

    it("count the jobs before a place, up to a bound", async () => {
      const ids = await scene.submitMany(5);
      const { place } = await scene.job(ids[3]!);
      expect(await scene.stores.reader.position(scene.endpointNo, place, 100)).toBe(3);
      expect(await scene.stores.reader.position(scene.endpointNo, place, 2)).toBe(2);
    });

    it("know since when the oldest normal job waits", async () => {
      await scene.submit({ lowPriority: true });
      expect(await scene.stores.tallies.oldestWaiting(scene.endpointNo)).toBeUndefined();
      scene.now += 1_000;
      await scene.submit();
      scene.now += 1_000;
      await scene.submit();
      expect(await scene.stores.tallies.oldestWaiting(scene.endpointNo)).toBe(startAt + 1_000);
    });

    it("count for each live worker what it holds", async () => {
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
