import { expect, it } from "vitest";
import { type Action, actions } from "../../domain/access/audit.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import type { Setting } from "./scene.js";

const actor = { at: 5, userNo: 80, userId: "user", keyId: "key", keyPrefix: "mr_abc", address: "::1", requestId: "r" };

/** The audit log: an entry for each change, in the change's own commit. */
export function audit(setting: () => Setting): void {
  it("a change is stored with its entry; neither is there without the other", async () => {
    const { stores } = setting().scene;
    const make = (id: string, note: object = { action: "secret.create", resource: id, after: { name: "é" } }) =>
      auditing.run(actor, async () => {
        auditing.note(note as never);
        return stores.secrets.create({ id, ownerNo: 80, name: id, description: "", createdAt: 5, value: "v" });
      });
    const list = (more: object = {}) =>
      stores.audit.list({ userNo: 80, limit: 10, ...more }).then(({ entries }) => entries);
    const { no } = await make("audited0000001");
    const [entry] = await list();
    expect(entry).toEqual({
      ...actor,
      no: entry?.no,
      action: "secret.create",
      resource: "audited0000001",
      after: { name: "é" },
    });
    await expect(make("audited0000001")).rejects.toThrow();
    expect(await list()).toHaveLength(1);
    const broken = { action: null, resource: "audited0000002" }; // cannot be stored
    await expect(make("audited0000002", broken)).rejects.toThrow();
    expect((await stores.secrets.of(80)).map(({ id }) => id)).toEqual(["audited0000001"]);
    await stores.secrets.remove(no); // a write of nobody's is not recorded
    expect(await list()).toHaveLength(1);
  });

  it("a purge of waiting jobs is stored with its entry; one that finds none leaves none", async () => {
    const { scene } = setting();
    const change = { action: "endpoint.purgeQueue", resource: "purged", after: { name: "é" } } as const;
    const purge = async () => {
      const upToPlace = await scene.stores.reader.lastPlace();
      return auditing.run({ ...actor, userNo: 83 }, () => {
        auditing.note(change);
        const { endpointNo, now } = scene;
        return scene.stores.jobs.cancelWaiting({ endpointNo, upToPlace, error: "purged", now, limit: 10 });
      });
    };
    const entries = async () => (await scene.stores.audit.list({ userNo: 83, limit: 10 })).entries;
    expect([await purge(), await entries()]).toEqual([[], []]);
    await scene.submit();
    expect(await purge()).toHaveLength(1);
    expect(await entries()).toEqual([{ ...actor, ...change, userNo: 83, no: expect.any(Number) }]);
  });

  it("a redelivery is stored with its entry, even of several at once; one that is not made leaves none", async () => {
    const { scene, first } = setting();
    await scene.jobIn("COMPLETED", first, { webhook: "https://example.com/hook" });
    const [delivery] = await scene.deliveries();
    const { deliveries } = scene.stores;
    const change = { action: "delivery.redeliver", resource: "redelivered" } as const;
    const again = () =>
      auditing.run({ ...actor, userNo: 84 }, () => {
        auditing.note(change);
        return deliveries.redeliver({ deliveryNo: delivery!.no, triesMax: 3, now: scene.now });
      });
    const entries = async () => (await scene.stores.audit.list({ userNo: 84, limit: 10 })).entries;
    expect([await again(), await entries()]).toEqual([false, []]); // it has not ended
    const attempt = { at: scene.now, status: 200, error: undefined, durationMs: 1 };
    await deliveries.record({ deliveryNo: delivery!.no, attempt, outcome: { state: "delivered" } });
    const made = await Promise.all([again(), again(), again()]);
    expect(made.filter(Boolean)).toEqual([true]);
    expect(await entries()).toMatchObject([change]);
  });

  it("entries are found by user, key, action, resource and time, newest first, and forgotten in pieces", async () => {
    const { stores } = setting().scene;
    const acts = actions.slice(0, 5);
    for (let n = 1; n <= 5; n++) {
      await auditing.run({ ...actor, userNo: 81, at: n, keyId: `key ${n % 2}` }, async () => {
        auditing.note({ action: acts[n - 1] as Action, resource: `r${n}` });
        await stores.access.noteUses(new Map([[n, n]]));
      });
    }
    const found = async (more: object) =>
      (await stores.audit.list({ userNo: 81, limit: 10, ...more })).entries.map(({ resource }) => resource);
    expect(await found({})).toEqual(["r5", "r4", "r3", "r2", "r1"]);
    expect(await found({ limit: 2 })).toEqual(["r5", "r4"]);
    expect(await found({ keyId: "key 0" })).toEqual(["r4", "r2"]);
    expect(await found({ userNo: undefined, userId: "user", action: acts[1] })).toEqual(["r2"]);
    expect(await found({ userNo: undefined, userId: "other" })).toEqual([]);
    expect(await found({ action: acts[2] })).toEqual(["r3"]);
    expect(await found({ resource: "r3" })).toEqual(["r3"]);
    expect(await found({ sinceAt: 2, untilAt: 4 })).toEqual(["r3", "r2"]);
    const { entries, lookedTo } = await stores.audit.list({ userNo: 81, limit: 2 });
    expect(lookedTo).toBe(entries[1]?.no);
    expect((await stores.audit.list({ userNo: 81, limit: 10 })).lookedTo).toBeUndefined();
    expect(await found({ beforeNo: lookedTo })).toEqual(["r3", "r2", "r1"]);
    expect([await stores.audit.forget(4, 2), await stores.audit.forget(4, 2), await stores.audit.forget(4, 2)]).toEqual(
      [2, 1, 0],
    );
    expect(await found({})).toEqual(["r5", "r4"]);
  });

  it("of very many entries a read looks at some, and says how far it came; the oldest are trimmed", async () => {
    const { stores } = setting().scene;
    const count = limits.auditRowsPerRead + 10;
    await auditing.run({ ...actor, userNo: 82 }, async () => {
      for (let n = 0; n < count; n++)
        auditing.note({ action: n === 3 ? "user.transfer" : "user.update", resource: `n${n}` });
      await stores.access.noteUses(new Map([[1, 1]]));
    });
    const rare = { userNo: 82, action: "user.transfer", limit: 2 };
    const { entries, lookedTo } = await stores.audit.list(rare);
    expect(entries).toEqual([]);
    const rest = await stores.audit.list({ ...rare, beforeNo: lookedTo });
    expect([rest.entries.map(({ resource }) => resource), rest.lookedTo]).toEqual([["n3"], undefined]);
    const trim = () => stores.audit.trim(82, 5, count - 10);
    expect([await trim(), await trim(), await trim()]).toEqual([count - 10, 5, 0]);
    const left = await stores.audit.list({ userNo: 82, limit: 10 });
    expect(left.entries.map(({ resource }) => resource)).toEqual([1, 2, 3, 4, 5].map((n) => `n${count - n}`));
  });
}
