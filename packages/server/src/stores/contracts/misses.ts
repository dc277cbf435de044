import { describe, expect, it } from "vitest";
import { Registry } from "../../memory/registry.js";
import type { Stores } from "../../store/index.js";
import { plainKey, plainUser, workerChanges } from "../../testing/facts-fixture.js";
import type { Setting } from "./scene.js";

/** Lookups of ids and keys that a server has not read yet. */
export function misses(setting: () => Setting): void {
  describe("a row that a server has not read", () => {
    it("is found by its id while it exists", async () => {
      const { scene, first } = setting();
      const { stores, now } = scene;
      const { id: ownerId, no: ownerNo } = await stores.access.createUser({ ...plainUser, id: "user", isAdmin: true });
      const old = { hash: "old", prefix: "mr_old", until: now };
      await stores.access.createKey({ ...plainKey, hash: "hash", ownerNo, old });
      const volume = { id: "volume00000001", ownerNo, name: "v", size: 1, dataCenterId: "", sizedAt: 1, gbMs: 0 };
      await stores.volumes.create(volume);
      expect(ownerId).toBe("user");
      expect(await stores.access.existing(["hash", "other"])).toEqual(["hash"]);
      expect(await stores.access.existing(["old", "other"])).toEqual(["old"]);
      expect(await stores.volumes.existing([volume.id, "other"])).toEqual([volume.id]);
      expect(await stores.endpoints.existing(["endpoint000001", "other"])).toEqual(["endpoint000001"]);
      const { id } = (await stores.workers.all(now)).find(({ no }) => no === first)!;
      expect(await stores.workers.existing([id])).toEqual([]); // it has no secret yet
      await stores.workers.change(first, { by: "prepare", secretHash: "secret", workerUrl: "" });
      expect(await stores.workers.existing([id, "other"])).toEqual([id]);
      await stores.workers.change(first, { ...workerChanges.end, endedAt: now });
      await stores.endpoints.remove(scene.endpointNo, now);
      expect([await stores.workers.existing([id]), await stores.endpoints.existing(["endpoint000001"])]).toEqual([
        [],
        [],
      ]);
    });

    it("is read by one query for many, and nothing else is read", async () => {
      const { stores, now } = setting().scene;
      let queries = 0;
      const existing = (hashes: readonly string[]) => {
        queries++;
        return stores.access.existing(hashes);
      };
      const refused = () => Promise.reject(new Error("everything was read"));
      const access = { ...stores.access, existing, keys: refused, users: refused };
      const shared = { marks: refused } as unknown as NonNullable<Stores["shared"]>;
      const registry = new Registry({ ...stores, shared, access }, { now: () => now });
      const garbage = Array.from({ length: 200 }, (_, n) => registry.known("key", `garbage${n}`, () => {}));
      await Promise.all(garbage);
      expect(queries).toBe(1);
    });
  });
}
