import { beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { idsOf, type Scene, type Setting, startAt } from "./scene.js";

/** Which worker gets which job, and in what order. */
export function takes(setting: () => Setting): void {
  describe("taking", () => {
    let scene: Scene;
    let first: number;
    let second: number;
    beforeEach(() => {
      ({ scene, first, second } = setting());
    });

    it("gives each job to one taker only, in the order of submission", async () => {
      const ids = await scene.submitMany(50);
      const turns = await Promise.all(Array.from({ length: 30 }, (_, n) => scene.take(n % 2 ? first : second, 3)));
      const taken = turns.flatMap(idsOf);
      expect([...taken].sort()).toEqual([...ids].sort());
      for (const turn of turns) {
        const order = idsOf(turn).map((id) => ids.indexOf(id));
        expect(order).toEqual([...order].sort((a, b) => a - b));
      }
      expect(await scene.stores.tallies.holdings(scene.endpointNo)).toEqual(
        new Map([first, second].map((no) => [no, turns.flat().filter((job) => job.workerNo === no).length])),
      );
    });

    it("finds jobs submitted before it, small or large, committed or not, if the store promises that", async () => {
      for (let n = 0; n < 20; n++) {
        const { jobs } = scene.stores;
        const body = `"${"x".repeat(n % 2 ? limits.largeCallBytes : 1)}"`;
        const submitted = jobs.submit(scene.newJob({ body }));
        const taken = await scene.take(first);
        await submitted;
        if (jobs.isInOrder) expect(taken).toHaveLength(1);
        // The second take is repeated once the first is committed.
        else expect(taken.length + (await scene.take(first)).length).toBe(1);
      }
    });

    it("serves the first worker in line first, and says whether any job was left", async () => {
      const ids = await scene.submitMany(4);
      const asks = [
        { workerNo: second, count: 2 },
        { workerNo: first, count: 1 },
      ];
      const turn = await scene.stores.jobs.take({ endpointNo: scene.endpointNo, asks, now: scene.now });
      expect(turn.jobs.map(({ id, workerNo }) => [id, workerNo])).toEqual([
        [ids[0], second],
        [ids[1], second],
        [ids[2], first],
      ]);
      expect(turn.dry).toBe(false);
      const rest = await scene.stores.jobs.take({ endpointNo: scene.endpointNo, asks, now: scene.now });
      expect([idsOf(rest.jobs), rest.dry]).toEqual([[ids[3]], true]);
    });

    it.each([
      ["a worker that asks for many", (workers: readonly number[]) => [{ workerNo: workers[0]!, count: 100 }]],
      ["several workers in line", (workers: readonly number[]) => workers.map((workerNo) => ({ workerNo, count: 1 }))],
      ["both", (workers: readonly number[]) => workers.map((workerNo) => ({ workerNo, count: 2 }))],
    ])("hands %s no more bytes at once than fit, and the rest in their order", async (_, asksOf) => {
      const workers = await Promise.all([3, 4, 5, 6, 7].map((n) => scene.worker(`worker0000000${n}`)));
      // two bytes per character: the limit is in bytes
      const body = `"${"ü".repeat(0.2 * limits.takeBytesMax)}"`;
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) ids.push(await scene.submit({ body }));
      const take = () =>
        scene.stores.jobs.take({ endpointNo: scene.endpointNo, asks: asksOf(workers), now: scene.now });
      const large = await take();
      expect([idsOf(large.jobs), large.dry]).toEqual([ids.slice(0, 3), false]);
      expect(large.jobs.every(({ inputBytes }) => inputBytes === Buffer.byteLength(body))).toBe(true);
      expect(await scene.tally()).toMatchObject({ waiting: 2, running: 3 });
      expect(await scene.job(ids[3]!)).toMatchObject({ status: "IN_QUEUE", starts: 0, workerNo: undefined });
      const rest = await take();
      expect([idsOf(rest.jobs), rest.dry]).toEqual([ids.slice(3), true]);
    });

    it("hands out a job that exceeds a turn's bytes", async () => {
      const ids = [await scene.submit({ body: `"${"x".repeat(limits.takeBytesMax)}"` }), await scene.submit()];
      for (const id of ids) expect(idsOf(await scene.take(first, 2))).toEqual([id]);
    });

    it("hands out one endpoint's jobs only", async () => {
      const other = await scene.endpoint("endpoint000002");
      await scene.submit({ endpointNo: other });
      expect(await scene.take(first)).toEqual([]);
    });

    it("gives nothing to a worker that is not wanted running, and serves the next", async () => {
      const third = await scene.worker("worker00000003");
      const fourth = await scene.worker("worker00000004");
      const ids = await scene.submitMany(2);
      await scene.stores.workers.change(first, workerChanges.close);
      await scene.stores.workers.change(second, workerChanges.stop);
      await scene.stores.workers.change(third, { ...workerChanges.end, endedAt: scene.now });
      const asks = [first, second, third, fourth].map((workerNo) => ({ workerNo, count: 1 }));
      const { jobs } = await scene.stores.jobs.take({ endpointNo: scene.endpointNo, asks, now: scene.now });
      expect(jobs.map(({ id, workerNo }) => [id, workerNo])).toEqual([[ids[0], fourth]]);
    });

    it("does not report an empty queue if no worker may take", async () => {
      const id = await scene.submit();
      await scene.stores.workers.change(first, workerChanges.stop);
      const asks = [{ workerNo: first, count: 1 }];
      expect(await scene.stores.jobs.take({ endpointNo: scene.endpointNo, asks, now: scene.now })).toEqual({
        jobs: [],
        dry: false,
      });
      expect(idsOf(await scene.take(second))).toEqual([id]);
    });

    it("gives a deleted endpoint neither jobs nor takers", async () => {
      await scene.submit();
      await scene.stores.endpoints.remove(scene.endpointNo, scene.now);
      expect(await scene.take(first)).toEqual([]);
      expect(await scene.stores.jobs.submit(scene.newJob())).toEqual({ kind: "closed" });
      expect(await scene.tally()).toMatchObject({ waiting: 1 });
    });

    it("puts a job that was given back at the front", async () => {
      const ids = await scene.submitMany(3);
      await scene.take(first, 2);
      await scene.change(ids[1]!, { by: "giveBack", excused: false });
      expect(idsOf(await scene.take(second, 2))).toEqual([ids[1], ids[2]]);
    });

    it("counts a lost start, and excuses a start that the server took back", async () => {
      const id = await scene.submit();
      await scene.takeOne(first);
      await scene.change(id, { by: "giveBack", excused: false });
      expect(await scene.job(id)).toMatchObject({ starts: 1, excused: 0, retries: 1 });
      await scene.takeOne(first);
      await scene.change(id, { by: "giveBack", excused: true });
      expect(await scene.job(id)).toMatchObject({
        status: "IN_QUEUE",
        starts: 2,
        excused: 1,
        retries: 1,
        takenAt: undefined,
        deadlineAt: undefined,
        queuedAt: startAt,
      });
      expect(await scene.tally()).toMatchObject({ waiting: 1, running: 0, retried: 1 });
    });
  });
}
