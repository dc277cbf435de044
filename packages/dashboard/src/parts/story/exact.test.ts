import { describe, expect, it } from "vitest";
import { Exact, readJson } from "./exact.js";

describe("JSON of a handler", () => {
  it.each(["12345678901234567890", "1e400", "-0", "1.0", "0.1", '[1,2.50,{"a":9007199254740993}]', '"1.0"', "null"])(
    "is written again as it was: %s",
    (text) => {
      expect(JSON.stringify(readJson(text))).toBe(text);
    },
  );

  it("has plain numbers where they are the same", () => {
    expect(readJson('{"a":1,"b":0.25}')).toEqual({ a: 1, b: 0.25 });
    expect(readJson("1.50")).toEqual(new Exact("1.50"));
  });
});
