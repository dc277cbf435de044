import { expect, it } from "vitest";
import { changed } from "./audit.js";

it("A change holds the fields that differ, and of environments only the names of variables that do", () => {
  const before = { name: "a", size: 1, env: { SAME: "1", CHANGED: "old secret", GONE: "x" } };
  const after = { name: "b", size: 1, env: { SAME: "1", CHANGED: "new secret", NEW: "y" }, readme: "r" };
  expect(changed("template.update", "id", before, after)).toEqual({
    action: "template.update",
    resource: "id",
    before: { name: "a", env: { CHANGED: "…", GONE: "…" } },
    after: { name: "b", env: { CHANGED: "…", NEW: "…" }, readme: "r" },
  });
  expect(changed("template.create", "id", undefined, { name: "a" })).toEqual({
    action: "template.create",
    resource: "id",
    after: { name: "a" },
  });
});

it("A change keeps the beginning of long values, and has a bound as a whole", () => {
  const { after } = changed("template.create", "id", undefined, { readme: "x".repeat(100_000) });
  expect(after?.readme).toMatch(/^"x{1999}… \(100002 characters\)$/);
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`f${n}`, "y".repeat(1_500)]));
  const env = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`NAME_${n}`, "z"]));
  expect(JSON.stringify(changed("template.create", "id", undefined, { ...many, env })).length).toBeLessThan(12_000);
});
