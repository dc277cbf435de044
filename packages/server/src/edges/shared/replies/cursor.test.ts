import { expect, it } from "vitest";
import { localVault } from "../../../vaults/local.js";
import { readCursor, writeCursor } from "./cursor.js";

const vault = localVault(Buffer.alloc(32, 7));
const write = (place: number) => writeCursor({ vault }, "a list", place);
const read = (cursor: string | undefined, list = "a list") => readCursor({ vault }, list, cursor);

it.each([0, 1, 35, 36, 46_655, 9_007_199_254_740_991])("A cursor is read as it was written: %i", (place) => {
  expect(read(write(place))).toBe(place);
});

it("No cursor is the beginning", () => {
  expect(read(undefined)).toBeUndefined();
});

it.each(["", "zzz", "-", "1e3", "-1", "0", "0".repeat(31), "0".repeat(32), "0".repeat(33), `${write(1)} `])(
  "An invalid cursor is refused: '%s'",
  (text) => expect(() => read(text)).toThrow(/^'cursor' must be/),
);

it("A cursor with one character changed, or of another list or server, is refused", () => {
  const cursor = write(46_655);
  for (let at = 0; at < cursor.length; at++) {
    const other = cursor[at] === "0" ? "1" : "0";
    expect(() => read(cursor.slice(0, at) + other + cursor.slice(at + 1))).toThrow(/^'cursor' must be/);
  }
  expect(() => read(cursor, "another list")).toThrow(/^'cursor' must be/);
  expect(() => readCursor({ vault: localVault(Buffer.alloc(32, 8)) }, "a list", cursor)).toThrow(/^'cursor' must be/);
});

it("Cursors of neighbouring places have nothing in common", () => {
  const differing = (one: string, other: string) => [...one].filter((char, at) => char !== other[at]).length;
  for (let place = 0; place < 1_000; place++) expect(differing(write(place), write(place + 1))).toBeGreaterThan(16);
});
