import fc from "fast-check";
import { expect, it } from "vitest";
import { excessOf } from "./nesting.js";

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
const depthOf = (value: unknown): number =>
  isObject(value) ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
const widthOf = (value: unknown): number => {
  if (!isObject(value)) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Math.max(own, ...Object.values(value).map(widthOf));
};

const boundless = { depthMax: 1e9, membersMax: 1e9, valuesMax: 1e9 };

it("measures how deep and how wide any JSON is, whatever its strings contain", () => {
  const value = fc.jsonValue({ maxDepth: 6, stringUnit: fc.constantFrom("[", "{", "]", "}", '"', "\\", ":", "é") });
  fc.assert(
    fc.property(value, fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 4 }), (json, depthMax, membersMax) => {
      const text = JSON.stringify(json);
      const isDeep = depthOf(json) > depthMax;
      expect(excessOf(text, { ...boundless, depthMax })).toBe(isDeep ? "depthMax" : undefined);
      const isWide = widthOf(json) > membersMax;
      expect(excessOf(text, { ...boundless, membersMax })).toBe(isWide ? "membersMax" : undefined);
    }),
    { numRuns: 500 },
  );
});

it("counts names and values", () => {
  const text = '{"a":[1,2,{"b":"x,y:z"}],"c":{}}'; // three names, and five values besides the lists that hold them
  expect(excessOf(text, { ...boundless, valuesMax: 7 })).toBeUndefined();
  expect(excessOf(text, { ...boundless, valuesMax: 6 })).toBe("valuesMax");
});

it("stops at the bracket that exceeds the limit", () => {
  expect(excessOf("[".repeat(1e6), { ...boundless, depthMax: 32 })).toBe("depthMax");
});
