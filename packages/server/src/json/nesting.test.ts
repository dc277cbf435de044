import fc from "fast-check";
import { expect, it } from "vitest";
import { isNestedDeeper } from "./nesting.js";

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

it("measures how deep any JSON is nested, whatever its strings contain", () => {
  const value = fc.jsonValue({ maxDepth: 6, stringUnit: fc.constantFrom("[", "{", "]", "}", '"', "\\", "é") });
  fc.assert(
    fc.property(value, fc.integer({ min: 0, max: 8 }), (json, max) => {
      expect(isNestedDeeper(JSON.stringify(json), max)).toBe(depthOf(json) > max);
    }),
    { numRuns: 500 },
  );
});

it("stops at the bracket that exceeds the limit", () => {
  expect(isNestedDeeper("[".repeat(1e6), 32)).toBe(true);
});
