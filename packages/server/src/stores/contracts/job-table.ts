import { beforeEach, describe, expect, it } from "vitest";
import { type Change, type JobEvent, mayHappen, transitions } from "../../domain/jobs/job.js";
import { completed, idsOf, type Scene, type Setting, statuses } from "./scene.js";

/** Jobs change state only by a transition in the job table. */
export function jobTable(setting: () => Setting): void {
  describe("the job table", () => {
    let scene: Scene;
    let first: number;
    let second: number;
    beforeEach(() => {
      ({ scene, first, second } = setting());
    });

    const changes: Record<Exclude<JobEvent, "take" | "progress" | "complete">, Change> = {
      fail: { by: "fail", error: "lost too often" },
      giveBack: { by: "giveBack", excused: false },
      timeOut: { by: "timeOut", error: "too slow" },
      cancel: { by: "cancel" },
      retry: { by: "retry" },
    };
    const pairs = Object.entries(changes).flatMap(([event, change]) =>
      statuses.map((status) => [event as keyof typeof changes, status, change] as const),
    );
    it.each(pairs)("is followed: %s of a job that is %s", async (event, status, change) => {
      const id = await scene.jobIn(status, first);
      const before = await scene.job(id);
      const tally = await scene.tally();
      const settled = await scene.stores.jobs.change({ job: before, change, now: scene.now });
      const after = await scene.job(id);
      if (mayHappen(event, status)) {
        expect([settled?.status, after.status]).toEqual([transitions[event].to, transitions[event].to]);
      } else {
        expect(settled).toBeUndefined();
        expect(after).toEqual(before);
        expect(await scene.tally()).toEqual(tally);
      }
    });

    it.each(statuses)("allows takes only of waiting jobs: not of a job that is %s", async (status) => {
      const id = await scene.jobIn(status, first);
      expect(idsOf(await scene.take(second))).toEqual(mayHappen("take", status) ? [id] : []);
    });

    it.each(statuses)("allows a worker's reports only on running jobs: not on a job that is %s", async (status) => {
      const id = await scene.jobIn(status, first);
      const runs = status === "IN_PROGRESS";
      expect(
        await scene.stores.jobs.progress({ endpointNo: scene.endpointNo, jobId: id, workerNo: first, progress: "1" }),
      ).toBe(runs);
      expect(await scene.append(id, first, "1")).toBe(runs);
      expect((await scene.settle(id, first, completed("2"))) !== undefined).toBe(runs);
      expect((await scene.job(id)).status).toBe(runs ? "COMPLETED" : status);
    });
  });
}
