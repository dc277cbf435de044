import { beforeEach, describe, expect, it } from "vitest";
import { completed, day, failed, idsOf, type Scene, type Setting, startAt } from "./scene.js";

/** A job's life from submission to end, and its retry. */
export function jobLife(setting: () => Setting): void {
  describe("a job's life", () => {
    let scene: Scene;
    let first: number;
    beforeEach(() => {
      ({ scene, first } = setting());
    });

    it("begins waiting, without the values of a run", async () => {
      const id = await scene.submit({ lowPriority: true, executionTimeoutMs: 7_000, retentionMs: 60_000 });
      expect(await scene.job(id)).toMatchObject({
        id,
        status: "IN_QUEUE",
        lowPriority: true,
        starts: 0,
        excused: 0,
        retries: 0,
        workerNo: undefined,
        workerId: "",
        createdAt: startAt,
        queuedAt: startAt,
        takenAt: undefined,
        finishedAt: undefined,
        deadlineAt: undefined,
        ttlEndAt: startAt + day,
        expiresAt: startAt + day,
        executionTimeoutMs: 7_000,
        retentionMs: 60_000,
        hasWebhook: false,
        stopWanted: false,
        output: undefined,
        error: undefined,
        progress: undefined,
      });
    });

    it("hands a taken job over with everything that was submitted, and counts the start", async () => {
      const id = await scene.submit({
        webhook: "https://example.com/hook",
        s3Config: "sealed",
        policy: '{"ttl":20000}',
        trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        executionTimeoutMs: 9_000,
      });
      scene.now += 1_500;
      expect(await scene.takeOne(first)).toEqual({
        no: (await scene.job(id)).no,
        id,
        workerNo: first,
        starts: 1,
        takenAt: startAt + 1_500,
        queuedAt: startAt,
        deadlineAt: startAt + 10_500,
        input: '{"n":1}',
        inputBytes: expect.any(Number),
        webhook: "https://example.com/hook",
        s3Config: "sealed",
        policy: '{"ttl":20000}',
        trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      });
      const sent = await scene.stores.reader.submission((await scene.job(id)).no);
      expect(sent?.trace).toBe("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
      expect(await scene.job(id)).toMatchObject({
        status: "IN_PROGRESS",
        workerNo: first,
        workerId: "worker00000001",
        starts: 1,
        deadlineAt: startAt + 10_500,
      });
    });

    it("keeps progress while it runs, and drops it at the end", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first);
      expect(
        await scene.stores.jobs.progress({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo: first,
          progress: '"half"',
        }),
      ).toBe(true);
      expect(
        await scene.stores.jobs.progress({
          endpointNo: scene.endpointNo,
          jobId: id,
          workerNo: first,
          progress: '"more"',
        }),
      ).toBe(true);
      expect(await scene.job(id)).toMatchObject({ status: "IN_PROGRESS", progress: '"more"', output: undefined });
      await scene.settle(id, first, completed('{"a":1}'));
      expect(await scene.job(id)).toMatchObject({ status: "COMPLETED", progress: undefined, output: '{"a":1}' });
    });

    it("ends by its worker's report, with times and retention from that report", async () => {
      const id = await scene.submit({ retentionMs: 60_000 });
      scene.now += 200;
      await scene.takeOne(first);
      scene.now += 1_000;
      expect(await scene.settle(id, first, failed("it broke"))).toEqual({
        id,
        status: "FAILED",
        delivery: false,
        delayMs: 200,
        executionMs: 1_000,
      });
      expect(await scene.job(id)).toMatchObject({
        status: "FAILED",
        error: "it broke",
        finishedAt: startAt + 1_200,
        deadlineAt: undefined,
        expiresAt: startAt + 61_200,
        workerId: "worker00000001",
      });
    });

    it("never outlives its ttl by its retention", async () => {
      const id = await scene.submit({ ttlEndAt: startAt + 20_000, retentionMs: 60_000 });
      await scene.takeOne(first);
      await scene.settle(id, first);
      expect((await scene.job(id)).expiresAt).toBe(startAt + 20_000);
    });

    it("keeps the reason of its end, and tells its worker to stop", async () => {
      const id = await scene.jobIn("TIMED_OUT", first);
      expect(await scene.job(id)).toMatchObject({ error: "too slow", stopWanted: true, deadlineAt: undefined });
      expect(idsOf(await scene.stores.reader.heldBy(first))).toEqual([id]);
      expect(idsOf(await scene.stores.reader.unstopped())).toEqual([id]);
    });

    it("does not ask a worker to stop a job that was waiting", async () => {
      const id = await scene.submit();
      expect(await scene.change(id, { by: "cancel" })).toMatchObject({ status: "CANCELLED", executionMs: 0 });
      expect(await scene.job(id)).toMatchObject({ stopWanted: false, error: undefined, workerId: "" });
      expect(await scene.stores.reader.unstopped()).toEqual([]);
    });

    it("starts over by a retry: at the back, with starts at 0 and without anything from the run before", async () => {
      const id = await scene.jobIn("IN_PROGRESS", first, { webhook: "https://example.com/hook" });
      await scene.change(id, { by: "giveBack", excused: false });
      await scene.takeOne(first);
      await scene.append(id, first, '"chunk"');
      await scene.settle(id, first, failed("it broke"));
      const later = await scene.submit();
      scene.now += 5_000;
      expect(await scene.change(id, { by: "retry" })).toMatchObject({ status: "IN_QUEUE" });
      const job = await scene.job(id);
      expect(job).toMatchObject({
        status: "IN_QUEUE",
        starts: 0,
        excused: 0,
        retries: 0,
        createdAt: startAt,
        queuedAt: startAt + 5_000,
        takenAt: undefined,
        finishedAt: undefined,
        expiresAt: startAt + day,
        hasWebhook: true,
        output: undefined,
        error: undefined,
      });
      expect(await scene.stores.chunks.read({ jobNo: job.no, fromIndex: 0, bytesMax: 1_000 })).toEqual([]);
      expect(idsOf(await scene.take(first, 2))).toEqual([later, id]);
    });
  });
}
