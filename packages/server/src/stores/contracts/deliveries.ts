import { beforeEach, describe, expect, it } from "vitest";
import { isFinal } from "../../domain/jobs/job.js";
import { completed, day, failed, type Scene, type Setting, statuses } from "./scene.js";

/** Webhooks are created when their job ends, and attempted until they are settled. */
export function deliveries(setting: () => Setting): void {
  describe("deliveries", () => {
    let scene: Scene;
    let first: number;
    beforeEach(() => {
      ({ scene, first } = setting());
    });

    const webhook = "https://example.com/hook";
    const attempt = (at: number) => ({ at, status: 500, error: undefined, durationMs: 7 });

    it.each(statuses.filter(isFinal))("are made in the same commit as the end: %s", async (status) => {
      const id = await scene.jobIn(status, first, { webhook });
      const [delivery] = await scene.stores.deliveries.due({ now: scene.now, limit: 10 });
      expect(delivery).toMatchObject({ jobId: id, url: webhook, state: "pending", tries: 0, nextAt: scene.now });
      expect(await scene.stores.deliveries.nextDue()).toBe(scene.now);
    });

    it("are made by a purge, and not for jobs without a webhook", async () => {
      await scene.jobIn("COMPLETED", first);
      const [hooked, plain] = [await scene.submit({ webhook }), await scene.submit()];
      const upTo = await scene.stores.reader.lastPlace();
      const cancelled = await scene.stores.jobs.cancelWaiting({
        endpointNo: scene.endpointNo,
        upToPlace: upTo,
        error: "purged",
        now: scene.now,
        limit: 10,
      });
      expect(new Map(cancelled.map(({ id, delivery }) => [id, delivery]))).toEqual(
        new Map([
          [hooked, true],
          [plain, false],
        ]),
      );
      expect((await scene.deliveries()).map(({ jobId }) => jobId)).toEqual([hooked]);
    });

    it("are not made twice by repeated results", async () => {
      const id = await scene.jobIn("COMPLETED", first, { webhook });
      await scene.settle(id, first);
      expect(await scene.deliveries()).toHaveLength(1);
    });

    it("wait for their next time, and list each attempt", async () => {
      await scene.jobIn("COMPLETED", first, { webhook });
      const no = (await scene.deliveries())[0]!.no;
      await scene.stores.deliveries.record({
        deliveryNo: no,
        attempt: attempt(scene.now),
        outcome: { state: "pending", nextAt: scene.now + 10_000 },
      });
      expect(await scene.stores.deliveries.due({ now: scene.now + 9_999, limit: 10 })).toEqual([]);
      expect(await scene.stores.deliveries.due({ now: scene.now + 10_000, limit: 10 })).toMatchObject([
        { no, tries: 1 },
      ]);
      await scene.stores.deliveries.record({
        deliveryNo: no,
        attempt: attempt(scene.now + 10_000),
        outcome: { state: "failed" },
      });
      expect(await scene.stores.deliveries.nextDue()).toBeUndefined();
      expect(await scene.deliveries()).toMatchObject([
        { state: "failed", tries: 2, attempts: [{ at: scene.now }, { at: scene.now + 10_000 }] },
      ]);
    });

    it("keep an attempt once, even if its record is written twice because the first reply was lost", async () => {
      await scene.jobIn("COMPLETED", first, { webhook });
      const no = (await scene.deliveries())[0]!.no;
      const again = { state: "pending", nextAt: scene.now + 10_000 } as const;
      await scene.stores.deliveries.record({ deliveryNo: no, attempt: attempt(scene.now), outcome: again });
      await scene.stores.deliveries.record({ deliveryNo: no, attempt: attempt(scene.now), outcome: again });
      expect(await scene.deliveries()).toMatchObject([
        { tries: 1, nextAt: again.nextAt, attempts: [attempt(scene.now)] },
      ]);
    });

    it("give the size of their bodies, from the bytes of the input and the output", async () => {
      for (const verdict of [failed("é"), completed('"漢漢"')]) {
        const id = await scene.submit({ webhook, body: '"é"' });
        await scene.takeOne(first);
        await scene.settle(id, first, verdict);
      }
      const due = await scene.stores.deliveries.due({ now: scene.now, limit: 10 });
      expect(due.map(({ bytes }) => bytes)).toEqual([8, 12]);
    });

    it("are superseded by a retry, whose end makes a new delivery with another id", async () => {
      const id = await scene.jobIn("FAILED", first, { webhook });
      const [old] = await scene.deliveries();
      await scene.change(id, { by: "retry" });
      expect(await scene.stores.deliveries.nextDue()).toBeUndefined();
      await scene.stores.deliveries.record({
        deliveryNo: old!.no,
        attempt: attempt(scene.now),
        outcome: { state: "pending", nextAt: scene.now },
      });
      expect(await scene.stores.deliveries.due({ now: scene.now, limit: 10 })).toEqual([]);
      await scene.takeOne(first);
      await scene.settle(id, first);
      const [made] = await scene.stores.deliveries.due({ now: scene.now, limit: 10 });
      expect(made!.jobId).toBe(id);
      expect(made!.webhookId).not.toBe(old!.webhookId);
    });

    it("that are due first are found for each endpoint, some endpoints at a time", async () => {
      const numbers: number[] = [];
      for (const id of ["heads0", "heads1", "heads2"]) numbers.push(await scene.endpoint(id));
      for (const [at, endpointNo] of numbers.entries())
        for (let n = 0; n < 4 - at; n++) {
          await scene.submit({ endpointNo, webhook, id: `head-${at}-${n}` });
          const upToPlace = await scene.stores.reader.lastPlace();
          await scene.stores.jobs.cancelWaiting({
            endpointNo,
            upToPlace,
            error: "purged",
            now: scene.now + n,
            limit: 10,
          });
        }
      const heads = async (afterEndpointNo: number, endpoints: number, now = scene.now + 10) => {
        const { due, lookedTo } = await scene.stores.deliveries.heads({ now, afterEndpointNo, endpoints });
        return [due.map(({ jobId }) => jobId).sort(), lookedTo];
      };
      expect(await heads(numbers[0]! - 1, 2)).toEqual([
        ["head-0-0", "head-0-1", "head-0-2", "head-1-0", "head-1-1", "head-1-2"],
        numbers[1],
      ]);
      expect(await heads(numbers[1]!, 2)).toEqual([["head-2-0", "head-2-1"], undefined]);
      expect(await heads(numbers[2]!, 2)).toEqual([[], undefined]);
      expect(await heads(numbers[0]! - 1, 10, scene.now + 1)).toEqual([
        ["head-0-0", "head-0-1", "head-1-0", "head-1-1", "head-2-0", "head-2-1"],
        undefined,
      ]);
    });

    it("are found by their id, and listed by state, a page at a time", async () => {
      for (let n = 0; n < 5; n++) await scene.jobIn("COMPLETED", first, { webhook });
      const all = await scene.deliveries();
      for (const { no } of all.slice(1, 3))
        await scene.stores.deliveries.record({
          deliveryNo: no,
          attempt: { ...attempt(scene.now), reply: "é\n" },
          outcome: { state: "failed" },
        });
      const list = async (query: object) => {
        const found = await scene.stores.deliveries.list({ endpointNos: [scene.endpointNo], limit: 10, ...query });
        return found.map(({ no }) => all.findIndex((each) => each.no === no));
      };
      expect(await list({ state: "pending" })).toEqual([0, 3, 4]);
      expect(await list({ state: "pending", beforeNo: all[0]!.no, limit: 1 })).toEqual([3]);
      expect(await list({ beforeNo: all[2]!.no })).toEqual([3, 4]);
      expect(await list({ state: "failed", beforeNo: all[2]!.no })).toEqual([]);
      expect(await scene.stores.deliveries.find(all[1]!.webhookId)).toMatchObject({
        no: all[1]!.no,
        attempts: [{ status: 500, reply: "é\n" }],
      });
      expect(await scene.stores.deliveries.find("msg_nothing")).toBeUndefined();
    });

    it("of several endpoints are listed in one order, a page at a time", async () => {
      const numbers = [scene.endpointNo];
      for (let n = 0; n < 5; n++) numbers.push(await scene.endpoint(`pages${n}`));
      for (let n = 0; n < 23; n++) {
        const endpointNo = numbers[(n * n) % 5]!; // one has most of them, others few, and one has none
        await scene.submit({ endpointNo, webhook, id: `page-${n}` });
        const upToPlace = await scene.stores.reader.lastPlace();
        await scene.stores.jobs.cancelWaiting({ endpointNo, upToPlace, error: "purged", now: scene.now, limit: 10 });
      }
      const list = (query: object) =>
        scene.stores.deliveries.list({ endpointNos: numbers.slice(1), limit: 100, ...query });
      const all = await list({});
      expect(all.map(({ no }) => no)).toEqual([...all.map(({ no }) => no)].sort((a, b) => b - a));
      expect(new Set(all.map(({ endpointNo }) => endpointNo)).size).toBe(2);
      for (const [n, { no }] of all.entries())
        if (n % 3 === 0)
          await scene.stores.deliveries.record({ deliveryNo: no, attempt: attempt(1), outcome: { state: "failed" } });
      for (const limit of [1, 2, 3, 7])
        for (const state of [undefined, "failed", "pending"] as const) {
          const found: number[] = [];
          for (let page = await list({ state, limit }); page.length > 0; ) {
            found.push(...page.map(({ no }) => no));
            page = await list({ state, limit, beforeNo: found.at(-1) });
          }
          const wanted = all.filter((_, n) => state === undefined || (n % 3 === 0) === (state === "failed"));
          expect(found).toEqual(wanted.map(({ no }) => no));
        }
    });

    it("of one among very many endpoints are listed", async () => {
      const [older, newer] = [
        await scene.jobIn("COMPLETED", first, { webhook }),
        await scene.jobIn("COMPLETED", first, { webhook }),
      ];
      const endpointNos = [...Array.from({ length: 70_000 }, (_, n) => 1_000_000 + n), scene.endpointNo];
      const list = async (query: object) =>
        (await scene.stores.deliveries.list({ endpointNos, limit: 10, ...query })).map(({ jobId }) => jobId);
      expect([await list({}), await list({ limit: 1 }), await list({ jobId: older })]).toEqual([
        [newer, older],
        [newer],
        [older],
      ]);
    });

    it.each(["delivered", "failed"] as const)("that are %s are due again when asked for", async (state) => {
      const id = await scene.jobIn("COMPLETED", first, { webhook });
      const { no, webhookId } = (await scene.deliveries())[0]!;
      const again = (now: number) => scene.stores.deliveries.redeliver({ deliveryNo: no, triesMax: 3, now });
      expect(await again(scene.now)).toBe(false); // it has not ended
      const record = (at: number) =>
        scene.stores.deliveries.record({ deliveryNo: no, attempt: attempt(at), outcome: { state } });
      await record(scene.now);
      expect(await again(scene.now + 1_000)).toBe(true);
      expect(await again(scene.now + 1_000)).toBe(false);
      expect(await scene.stores.deliveries.nextDue()).toBe(scene.now + 1_000);
      expect(await scene.stores.deliveries.forget(scene.now + day, 10)).toBe(0);
      await record(scene.now + 1_000);
      expect(await scene.deliveries()).toMatchObject([{ jobId: id, webhookId, state, tries: 2 }]);
      expect(await again(scene.now + 2_000)).toBe(true);
      await record(scene.now + 2_000);
      expect(await again(scene.now + 3_000)).toBe(false); // it has had three attempts
    });

    it("are not due again once their job was retried, deleted, or ended anew", async () => {
      const id = await scene.jobIn("FAILED", first, { webhook });
      const { no } = (await scene.deliveries())[0]!;
      await scene.stores.deliveries.record({ deliveryNo: no, attempt: attempt(1), outcome: { state: "delivered" } });
      const again = () => scene.stores.deliveries.redeliver({ deliveryNo: no, triesMax: 3, now: scene.now });
      await scene.change(id, { by: "retry" });
      expect(await again()).toBe(false);
      await scene.takeOne(first);
      await scene.settle(id, first);
      expect(await again()).toBe(false);
      const [newest] = await scene.deliveries();
      await scene.stores.deliveries.record({
        deliveryNo: newest!.no,
        attempt: attempt(2),
        outcome: { state: "delivered" },
      });
      await scene.stores.jobs.sweep({ now: scene.now + 2 * day, limit: 10 });
      expect(await scene.stores.deliveries.redeliver({ deliveryNo: newest!.no, triesMax: 3, now: scene.now })).toBe(
        false,
      );
    });

    it("that are due again keep their job until they have ended", async () => {
      await scene.jobIn("COMPLETED", first, { webhook });
      const { no } = (await scene.deliveries())[0]!;
      const record = (at: number) =>
        scene.stores.deliveries.record({ deliveryNo: no, attempt: attempt(at), outcome: { state: "delivered" } });
      await record(scene.now);
      expect(await scene.stores.deliveries.redeliver({ deliveryNo: no, triesMax: 3, now: scene.now })).toBe(true);
      const later = scene.now + 2 * day;
      await scene.stores.jobs.sweep({ now: later, limit: 10 });
      const due = await scene.stores.deliveries.due({ now: later, limit: 10 });
      expect(due.map(({ bytes }) => bytes > 0)).toEqual([true]);
      await record(later);
      await scene.stores.jobs.sweep({ now: later, limit: 10 });
      expect(await scene.stores.deliveries.redeliver({ deliveryNo: no, triesMax: 3, now: later })).toBe(false);
    });

    it("are forgotten some time after their end, never before it", async () => {
      await scene.jobIn("COMPLETED", first, { webhook });
      await scene.jobIn("COMPLETED", first, { webhook });
      const no = (await scene.deliveries())[0]!.no;
      await scene.stores.deliveries.record({
        deliveryNo: no,
        attempt: attempt(scene.now),
        outcome: { state: "delivered" },
      });
      const forget = (most: number) => scene.stores.deliveries.forget(scene.now + day, most);
      expect([await forget(1), await forget(1)]).toEqual([1, 0]);
      expect(await scene.deliveries()).toMatchObject([{ state: "pending" }]);
    });
  });
}
