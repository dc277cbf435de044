import { expect, it } from "vitest";
import { changed } from "./audit.js";

it("A change holds the fields that differ, and of environments only the names of variables that do", () => {
  const before = { name: "a", size: 1, env: { SAME: "1", CHANGED: "old secret", GONE: "x" } };
  const after = { name: "b", size: 1, env: { SAME: "1", CHANGED: "new secret", NEW: "y" }, readme: "r" };
  expect(changed("thing.update", "id", before, after)).toEqual({
    action: "thing.update",
    resource: "id",
    before: { name: "a", env: { CHANGED: "…", GONE: "…" } },
    after: { name: "b", env: { CHANGED: "…", NEW: "…" }, readme: "r" },
  });
  expect(changed("thing.create", "id", undefined, { name: "a" })).toEqual({
    action: "thing.create",
    resource: "id",
    after: { name: "a" },
  });
});
