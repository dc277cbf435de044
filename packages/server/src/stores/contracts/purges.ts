import { beforeEach, describe, expect, it } from "vitest";
import { idsOf, type Scene, type Setting, startAt } from "./scene.js";

/** A purge ends waiting jobs and nothing else. */
export function purges(setting: () => Setting): void {
  describe("cancelling all waiting jobs", () => {
    let scene: Scene;
    let first: number;
    beforeEach(() => {
      ({ scene, first } = setting());
    });

    it("ends waiting jobs up to a place, a batch at a time, and leaves the rest", async () => {
      const running = await scene.jobIn("IN_PROGRESS", first);
      const ids = await scene.submitMany(3);
      await scene.submit({ lowPriority: true });
      const upTo = await scene.stores.reader.lastPlace();
      const late = await scene.submit();
      const cancel = () =>
        scene.stores.jobs.cancelWaiting({
          endpointNo: scene.endpointNo,
          upToPlace: upTo,
          error: "purged",
          now: scene.now,
          limit: 3,
        });
      expect(idsOf(await cancel()).sort()).toEqual(ids);
      expect(await cancel()).toHaveLength(1);
      expect(await cancel()).toEqual([]);
      expect(await scene.job(ids[0]!)).toMatchObject({ status: "CANCELLED", error: "purged", finishedAt: scene.now });
      expect([(await scene.job(running)).status, (await scene.job(late)).status]).toEqual(["IN_PROGRESS", "IN_QUEUE"]);
      expect(await scene.tally()).toMatchObject({ waiting: 1, waitingNormal: 1, running: 1 });
    });

    it("does not count expired jobs", async () => {
      await scene.submit({ ttlEndAt: startAt + 10_000, webhook: "https://example.com/hook" });
      scene.now += 10_000;
      const upTo = await scene.stores.reader.lastPlace();
      expect(
        await scene.stores.jobs.cancelWaiting({
          endpointNo: scene.endpointNo,
          upToPlace: upTo,
          error: "purged",
          now: scene.now,
          limit: 10,
        }),
      ).toEqual([]);
      expect(await scene.deliveries()).toEqual([]);
    });
  });
}
