import { describe, expect, it } from "vitest";
import type { DeliveryState, ReceiverState } from "../../store/index.js";
import type { Setting } from "./scene.js";

/** Where webhooks go, and what is held back. */
export function receivers(setting: () => Setting): void {
  describe("a webhook receiver", () => {
    it("counts the attempts in a row that failed", async () => {
      const { receivers } = setting().scene.stores;
      const heard = (at: number, error?: string) => ({
        id: `receiver-${at}`,
        ownerNo: 3,
        origin: "https://a",
        at,
        error,
      });
      expect(await receivers.note(heard(1, "first"), 5)).toBe(1);
      expect(await receivers.note(heard(2, "second"), 5)).toBe(2);
      const shown = { id: "receiver-1", ownerNo: 3, origin: "https://a", failures: 2, failingAt: 1, error: "second" };
      expect(await receivers.list({ ownerNo: 3, failing: 2, limit: 5 })).toEqual([
        expect.objectContaining({ ...shown, attemptedAt: 2, pausedAt: undefined }),
      ]);
      expect(await receivers.note(heard(3), 5)).toBe(0);
      expect(await receivers.find("receiver-1")).toMatchObject({ failures: 0, failingAt: undefined, error: undefined });
      expect(await receivers.note({ ...heard(4), origin: "https://b" }, 1)).toBe(0);
      expect(await receivers.list({ ownerNo: 3, failing: 2, limit: 5 })).toHaveLength(1);
      expect(await receivers.forget(3, 5)).toBe(0);
      expect(await receivers.forget(4, 5)).toBe(1);
    });

    it("holds pending deliveries until it is resumed, and lets them go a few at a time", async () => {
      const { scene, first } = setting();
      const { receivers, deliveries } = scene.stores;
      for (let n = 0; n < 3; n++) {
        await scene.jobIn("CANCELLED", first, { webhook: "https://a/" });
      }
      const due = await deliveries.due({ now: scene.now, limit: 10 });
      expect(due).toHaveLength(3);
      const target = { ownerNo: 9, origin: "https://a" };
      const heard = { ...target, id: "receiver-held", at: scene.now, error: undefined };
      await receivers.note(heard, 5);
      const { no } = (await receivers.find("receiver-held"))!;
      expect(await receivers.paused([target])).toEqual([]);
      await receivers.pause(no, scene.now);
      const others = [
        { ...target, ownerNo: 8 },
        { ...target, origin: "https://b" },
      ];
      expect((await receivers.paused([...others, target])).map(({ id }) => id)).toEqual(["receiver-held"]);
      expect(await receivers.paused(others)).toEqual([]);
      const held = due.map((delivery, n) => ({ deliveryNo: delivery.no, receiverNo: no, bytes: 10 ** n }));
      await receivers.hold(held.slice(1).reverse());
      await receivers.hold(held.slice(0, 1));
      expect([await deliveries.due({ now: scene.now, limit: 10 }), await deliveries.nextDue()]).toEqual([
        [],
        undefined,
      ]);
      expect(await receivers.holding([no, no + 1])).toEqual(new Map([[no, 3]]));
      expect(await receivers.holdingOf([9, 8])).toEqual(new Map([[9, { count: 3, bytes: 111 }]]));
      const listed = (state: DeliveryState) => deliveries.list({ endpointNos: [scene.endpointNo], state, limit: 2 });
      expect([(await listed("held")).map((each) => each.no), await listed("pending")]).toEqual([
        [due[2]!.no, due[1]!.no],
        [],
      ]);
      expect(await deliveries.find(due[0]!.webhookId)).toMatchObject({ state: "pending", heldBy: no });
      expect(await receivers.release(scene.now, 2)).toBe(false);
      expect(await receivers.forget(scene.now + 1, 5)).toBe(0);
      await receivers.pause(no, undefined);
      expect(await receivers.forget(scene.now + 1, 5)).toBe(0);
      expect(await receivers.release(scene.now, 2)).toBe(true);
      expect((await deliveries.due({ now: scene.now, limit: 10 })).map((each) => each.no)).toEqual(
        due.slice(0, 2).map((each) => each.no),
      );
      expect([await receivers.release(scene.now, 2), await receivers.release(scene.now, 2)]).toEqual([true, false]);
      expect(await deliveries.due({ now: scene.now, limit: 10 })).toHaveLength(3);
      expect([await receivers.holdingOf([9]), await receivers.forget(scene.now + 1, 5)]).toEqual([new Map(), 1]);
    });

    it("is listed by its state", async () => {
      const { receivers } = setting().scene.stores;
      for (const [origin, error, pausedAt] of [
        ["a", undefined, undefined],
        ["b", "down", undefined],
        ["c", "down", 5],
      ] as const) {
        await receivers.note({ id: `state-${origin}`, ownerNo: 3, origin, at: 1, error }, 5);
        await receivers.pause((await receivers.find(`state-${origin}`))!.no, pausedAt);
      }
      const listed = async (state?: ReceiverState) =>
        (await receivers.list({ ownerNo: 3, state, failing: 1, limit: 5 })).map(({ origin }) => origin).join("");
      expect([await listed("healthy"), await listed("failing"), await listed("paused"), await listed()]).toEqual([
        "a",
        "b",
        "c",
        "abc",
      ]);
    });

    it("holds the delivery of a retried job no longer", async () => {
      const { scene, first } = setting();
      const { receivers, deliveries } = scene.stores;
      const id = await scene.jobIn("FAILED", first, { webhook: "https://a/" });
      const [due] = await deliveries.due({ now: scene.now, limit: 10 });
      await receivers.note(
        { id: "receiver-retried", ownerNo: 9, origin: "https://a", at: scene.now, error: "down" },
        5,
      );
      const { no } = (await receivers.find("receiver-retried"))!;
      await receivers.pause(no, scene.now);
      await receivers.hold([{ deliveryNo: due!.no, receiverNo: no, bytes: 1 }]);
      await scene.change(id, { by: "retry" });
      expect(await receivers.holding([no])).toEqual(new Map());
      await receivers.pause(no, undefined);
      while (await receivers.release(scene.now, 5));
      expect(await deliveries.find(due!.webhookId)).toMatchObject({ state: "failed", nextAt: undefined });
    });
  });
}
