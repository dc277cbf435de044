import { beforeEach, describe, expect, it } from "vitest";
import type { Scene, Setting } from "./scene.js";

/** Credentials of registries are stored as they were given. */
export function registryAuths(setting: () => Setting): void {
  describe("the credentials of registries", () => {
    let scene: Scene;
    beforeEach(() => {
      ({ scene } = setting());
    });
    const auth = (id: string, name = "mine") => ({ id, ownerNo: 1, name, username: "sealed user", password: "sealed" });

    it("are made, changed one by one, and removed", async () => {
      const { registryAuths } = scene.stores;
      const first = await registryAuths.create(auth("auth0000000001"));
      const second = await registryAuths.create(auth("auth0000000002", "other"));
      expect(first).toEqual({ no: first.no, ...auth("auth0000000001") });
      await registryAuths.save({ ...second, username: "another", password: "more" });
      const byId = (await registryAuths.all()).sort((a, b) => a.id.localeCompare(b.id));
      expect(byId).toEqual([first, { ...second, username: "another", password: "more" }]);
      await registryAuths.remove(first.no);
      expect((await registryAuths.all()).map(({ id }) => id)).toEqual([second.id]);
    });

    it("have unique ids", async () => {
      await scene.stores.registryAuths.create(auth("auth0000000001"));
      await expect(scene.stores.registryAuths.create(auth("auth0000000001", "other"))).rejects.toThrow();
    });

    it("may be any text", async () => {
      for (const [at, text] of ["a'b\\\"%_$1;--", "é漢😀"].entries()) {
        const made = { id: `auth000000000${at}`, ownerNo: 1, name: text, username: text, password: text };
        expect(await scene.stores.registryAuths.create(made)).toMatchObject(made);
      }
    });
  });
}
