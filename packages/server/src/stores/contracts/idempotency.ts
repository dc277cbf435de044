import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { failed, type Scene, type Setting } from "./scene.js";

/** A repeated key returns its first job. */
export function idempotency(setting: () => Setting): void {
  describe("an idempotency key", () => {
    let scene: Scene;
    let first: number;
    beforeEach(() => {
      ({ scene, first } = setting());
    });

    const key = (more: object = {}) => ({
      keyHash: "key-hash",
      bodyHash: "body-hash",
      route: "run",
      expiresAt: scene.now + limits.idempotencyMs,
      ...more,
    });

    it("returns the first job again, with its present state, and makes no second job", async () => {
      const id = await scene.submit({ idempotency: key() });
      await scene.takeOne(first);
      expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toEqual({
        kind: "known",
        record: { jobId: id, bodyHash: "body-hash", route: "run", lastStatus: "IN_PROGRESS" },
      });
      expect(await scene.tally()).toMatchObject({ waiting: 0, running: 1 });
    });

    it("gives one job to many simultaneous submissions", async () => {
      const replies = await Promise.all(
        Array.from({ length: 20 }, () => scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))),
      );
      expect(replies.filter(({ kind }) => kind === "submitted")).toHaveLength(1);
      expect(await scene.tally()).toMatchObject({ waiting: 1 });
    });

    it("returns the body and route of its first use, whatever the new request sends", async () => {
      await scene.submit({ idempotency: key({ bodyHash: "first", route: "runsync" }) });
      const again = await scene.stores.jobs.submit(scene.newJob({ idempotency: key({ bodyHash: "other" }) }));
      expect(again).toMatchObject({ kind: "known", record: { bodyHash: "first", route: "runsync" } });
    });

    it("belongs to one endpoint", async () => {
      const other = await scene.endpoint("endpoint000002");
      await scene.submit({ idempotency: key() });
      await scene.submit({ endpointNo: other, idempotency: key() });
    });

    it("outlives its job, with the job's last state", async () => {
      const id = await scene.submit({ idempotency: key(), retentionMs: 60_000 });
      await scene.takeOne(first);
      await scene.settle(id, first, failed("it broke"));
      scene.now += 60_000;
      expect(await scene.stores.jobs.sweep({ now: scene.now, limit: 100 })).toMatchObject({ deleted: 1 });
      expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({
        kind: "known",
        record: { jobId: id, lastStatus: "FAILED" },
      });
    });

    it("is not affected by later jobs", async () => {
      const early = await scene.submit({ idempotency: key(), retentionMs: 60_000 });
      await scene.takeOne(first);
      await scene.settle(early, first);
      scene.now += 60_000;
      await scene.stores.jobs.sweep({ now: scene.now, limit: 100 });
      const later = await scene.submit({ idempotency: key({ keyHash: "another" }), retentionMs: 60_000 });
      await scene.takeOne(first);
      await scene.settle(later, first, failed("it broke"));
      scene.now += 60_000;
      await scene.stores.jobs.sweep({ now: scene.now, limit: 100 });
      expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({
        record: { jobId: early, lastStatus: "COMPLETED" },
      });
    });

    it("ends after 24 hours, swept or not", async () => {
      const id = await scene.submit({ idempotency: key() });
      scene.now += limits.idempotencyMs - 1;
      expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({ kind: "known" });
      scene.now += 1;
      const again = await scene.submit({ idempotency: key() });
      expect(again).not.toBe(id);
      await scene.stores.jobs.sweep({ now: scene.now, limit: 100 });
      expect(await scene.stores.jobs.submit(scene.newJob({ idempotency: key() }))).toMatchObject({
        record: { jobId: again },
      });
    });

    it("is not stored for a refused submission", async () => {
      const taken = await scene.submit();
      await expect(scene.stores.jobs.submit(scene.newJob({ id: taken, idempotency: key() }))).rejects.toThrow();
      await scene.submit({ idempotency: key() });
    });
  });
}
