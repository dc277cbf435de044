import { describe, expect, it } from "vitest";
import { plainKey, plainTemplate, plainUser } from "../../testing/facts-fixture.js";
import type { Setting } from "./scene.js";

/** Users and keys. */
export function access(setting: () => Setting): void {
  describe("users and keys", () => {
    const made = async () => {
      const { stores } = setting().scene;
      const user = await stores.access.createUser({ ...plainUser, id: "user_one", name: "one", isAdmin: true });
      const key = await stores.access.createKey({ ...plainKey, hash: "hash", ownerNo: user.no });
      return { stores, access: stores.access, user, key };
    };

    it("are kept as they were made and saved", async () => {
      const { access, user, key } = await made();
      expect(await access.users()).toContainEqual(user);
      expect(await access.keys()).toContainEqual(key);
      expect(key).toMatchObject({ isAdmin: true, ownerNo: user.no });
      const changed = {
        ...user,
        name: "two",
        isAdmin: false,
        oldWebhookSecret: { sealed: "old", until: 5 },
        createdAt: 3,
      };
      await access.saveUser(changed);
      expect(await access.users()).toContainEqual(changed);
      const scope = { kind: "endpoints", access: { endpoint000001: "read" } } as const;
      const old = { hash: "before", prefix: "mr_bef", until: 7 };
      const saved = { ...key, name: "other", hash: "after", prefix: "mr_aft", scope, expiresAt: 9, old };
      await access.saveKey(saved);
      expect(await access.keys()).toContainEqual({ ...saved, isAdmin: false });
      expect((await access.existing(["hash", "after", "before"])).toSorted()).toEqual(["after", "before"]);
    });

    it("have one bootstrap key, which a new one replaces", async () => {
      const { access, user } = await made();
      const bootstrap = { ...plainKey, ownerNo: user.no, isBootstrap: true };
      await access.createKey({ ...bootstrap, id: "bootstrap00001", hash: "one" });
      await access.createKey({ ...bootstrap, id: "bootstrap00002", hash: "two" });
      const all = await access.keys();
      expect(all.filter(({ isBootstrap }) => isBootstrap).map(({ hash }) => hash)).toEqual(["two"]);
      expect(all.map(({ hash }) => hash)).toContain("hash");
      expect(await access.environmentKey()).toBeUndefined();
      for (const hash of ["two", "three"]) await access.setEnvironmentKey(hash);
      expect(await access.environmentKey()).toBe("three");
    });

    it("show the latest use of each key, whichever server writes last", async () => {
      const { access, key } = await made();
      await access.noteUses(new Map());
      await access.noteUses(new Map([[key.no, 5]]));
      await access.noteUses(new Map([[key.no, 3]]));
      expect(await access.lastUses([key.no, key.no + 1])).toEqual(new Map([[key.no, 5]]));
      await access.noteUses(new Map([[key.no, 8]]));
      expect(await access.lastUses([key.no])).toEqual(new Map([[key.no, 8]]));
      await access.removeKey(key.no);
      expect(await access.lastUses([key.no])).toEqual(new Map());
      expect(await access.existing(["hash"])).toEqual([]);
    });

    it("are deleted together; the user's row stays for a while, and its resources go to another user", async () => {
      const { stores, access, user } = await made();
      const heir = await access.createUser({ ...plainUser, id: "user_heir", name: "heir" });
      const owner = { id: "resource000001", ownerNo: user.no };
      await stores.templates.create({ ...owner, settings: plainTemplate });
      await stores.volumes.create({ ...owner, name: "v", size: 1, dataCenterId: "", sizedAt: 1, gbMs: 0 });
      await stores.registryAuths.create({ ...owner, name: "r", username: "", password: "" });
      await access.giveAll(user.no, heir.no);
      for (const each of [stores.templates, stores.volumes, stores.registryAuths])
        expect(await each.all()).toContainEqual(expect.objectContaining({ id: owner.id, ownerNo: heir.no }));
      await access.removeUser(user.no, 50);
      expect((await access.keys()).filter(({ ownerNo }) => ownerNo === user.no)).toEqual([]);
      expect((await access.users()).find(({ no }) => no === user.no)).toMatchObject({ deletedAt: 50 });
      await access.forgetUsers(49);
      expect((await access.users()).map(({ no }) => no)).toContain(user.no);
      await access.forgetUsers(50);
      expect((await access.users()).map(({ no }) => no)).toEqual(expect.not.arrayContaining([user.no]));
    });
  });
}
