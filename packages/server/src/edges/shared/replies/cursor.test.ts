import { expect, it } from "vitest";
import { readCursor, writeCursor } from "./cursor.js";

it.each([0, 1, 35, 36, 46_655, 9_007_199_254_740_991])("A cursor is read as it was written: %i", (no) => {
  expect(readCursor(writeCursor(no.toString(36)))).toBe(no);
});

it.each(["", "zzz", "z", "-", "zzz-", "zzz-0", "ZZZ-00", "zzz-00-00", "1e3", "-1", "zzzzzzzzzzzz-00", " 1-00"])(
  "An invalid cursor is refused: '%s'",
  (text) => expect(() => readCursor(text)).toThrow(/^'cursor' must be/),
);

it("A cursor with one character changed, or two exchanged, is refused", () => {
  const cursor = writeCursor("1a2b");
  for (let at = 0; at < cursor.length; at++) {
    const other = cursor[at] === "z" ? "y" : "z";
    expect(() => readCursor(cursor.slice(0, at) + other + cursor.slice(at + 1))).toThrow(/^'cursor' must be/);
  }
  expect(() => readCursor(cursor.replace("1a", "a1"))).toThrow(/^'cursor' must be/);
});
