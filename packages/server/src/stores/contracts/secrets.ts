import { expect, it } from "vitest";
import type { Setting } from "./scene.js";

/** Secrets of workers' environments. */
export function secrets(setting: () => Setting): void {
  it("secrets are kept by their owner and name, and values are read apart", async () => {
    const { stores } = setting().scene;
    const make = (ownerNo: number, name: string, n: number) =>
      stores.secrets.create({
        id: `secret0000000${n}`,
        ownerNo,
        name,
        description: "é",
        createdAt: 5,
        value: `sealed ${n}`,
      });
    const [b, a] = [await make(70, "b", 1), await make(70, "a", 2)];
    const other = await make(71, "a", 3);
    expect(await stores.secrets.of(70)).toEqual([a, b]);
    expect(a).toEqual({ no: a.no, id: "secret00000002", ownerNo: 70, name: "a", description: "é", createdAt: 5 });
    expect(await stores.secrets.values(70, ["a", "c"])).toEqual(new Map([["a", "sealed 2"]]));
    expect(await stores.secrets.values(70, [])).toEqual(new Map());
    await expect(make(70, "a", 4)).rejects.toThrow();
    await stores.secrets.remove(a.no);
    expect(await stores.secrets.of(70)).toEqual([b]);
    await stores.access.giveAll(71, 72);
    expect(await stores.secrets.of(72)).toEqual([{ ...other, ownerNo: 72 }]);
  });
}
