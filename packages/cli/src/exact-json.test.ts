import { expect, it } from "vitest";
import { parseExactly } from "./exact-json.js";

it.each([
  '{"id":12345678901234567890,"of":[1.0,-0,1e2,0.1,7,null,true]}',
  "1.50",
  '"1.0"',
  '{"a":{"b":[[123456789012345678901]]}}',
])("%s is written as it was read", (text) => {
  expect(JSON.stringify(parseExactly(text))).toBe(text);
});

it("Numbers that JavaScript writes in the same way are numbers", () => {
  expect(parseExactly('{"delayTime":12,"cost":0.25}')).toEqual({ delayTime: 12, cost: 0.25 });
});

it("What is not JSON is refused", () => {
  expect(() => parseExactly("{a:1}")).toThrow(SyntaxError);
});
