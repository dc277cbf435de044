import { describe, expect, it } from "vitest";
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
      expect(await receivers.list({ ownerNo: 3, limit: 5 })).toEqual([
        expect.objectContaining({ ...shown, attemptedAt: 2, pausedAt: undefined }),
      ]);
      expect(await receivers.note(heard(3), 5)).toBe(0);
      expect(await receivers.find("receiver-1")).toMatchObject({ failures: 0, failingAt: undefined, error: undefined });
      expect(await receivers.note({ ...heard(4), origin: "https://b" }, 1)).toBe(0);
      expect(await receivers.list({ ownerNo: 3, limit: 5 })).toHaveLength(1);
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
      const heard = { id: "receiver-held", ownerNo: 9, origin: "https://a", at: scene.now, error: undefined };
      await receivers.note(heard, 5);
      const { no } = (await receivers.find("receiver-held"))!;
      await receivers.pause(no, scene.now);
      expect((await receivers.paused()).map(({ id }) => id)).toEqual(["receiver-held"]);
      for (const delivery of due) await receivers.hold(delivery.no, no);
      expect([await deliveries.due({ now: scene.now, limit: 10 }), await deliveries.nextDue()]).toEqual([
        [],
        undefined,
      ]);
      expect(await receivers.holding([no, no + 1])).toEqual(new Map([[no, 3]]));
      expect(await deliveries.find(due[0]!.webhookId)).toMatchObject({ state: "pending", heldBy: no });
      expect(await receivers.release(scene.now, 2)).toBe(0);
      expect(await receivers.forget(scene.now + 1, 5)).toBe(0);
      await receivers.pause(no, undefined);
      expect(await receivers.release(scene.now, 2)).toBe(2);
      expect((await deliveries.due({ now: scene.now, limit: 10 })).map((each) => each.no)).toEqual(
        due.slice(0, 2).map((each) => each.no),
      );
      expect([await receivers.release(scene.now, 2), await receivers.release(scene.now, 2)]).toEqual([1, 0]);
    });
  });
}
