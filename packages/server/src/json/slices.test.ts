import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { charactersIn, textIn } from "./slices.js";

const isWhole = (text: string) => !/\p{Surrogate}/u.test(text);
const unit = fc.constantFrom("a", "é", "漢", "😀", '"', "\\", "\n", "\u0000", "u", "\\\\", '\\"');
/** Texts whose cut may fall at any place of what surrounds it. */
const around = fc
  .tuple(fc.integer({ min: limits.jsonPieceBytes - 40, max: limits.jsonPieceBytes }), fc.array(unit, { maxLength: 40 }))
  .map(([before, units]) => "x".repeat(before) + units.join("") + "y".repeat(100));

/** JSON with every character as an escape of six. */
const escaped = (text: string) =>
  `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`;

describe("A long text", () => {
  it("comes in slices cut between characters", () => {
    fc.assert(
      fc.property(around, (text) => {
        const slices = [...textIn(Buffer.from(text))];
        expect(slices.every(isWhole)).toBe(true);
        expect(slices.join("")).toBe(text);
      }),
    );
  });

  it("of no character has no slice", () => {
    expect([...textIn(Buffer.alloc(0)), ...charactersIn(Buffer.from('""'))]).toEqual([]);
  });
});

describe("A long JSON string", () => {
  it("comes in slices cut between characters and escapes", () => {
    fc.assert(
      fc.property(around, (text) => {
        const slices = [...charactersIn(Buffer.from(JSON.stringify(text)))];
        expect(slices.length).toBeGreaterThan(1);
        expect(slices.every(isWhole)).toBe(true);
        expect(slices.join("")).toBe(text);
      }),
    );
  });

  it.each([0, 1, 2, 3, 4, 5])("of escapes only comes in whole characters, shifted by %d", (shift) => {
    const text = "x".repeat(shift) + "😀".repeat(12_000);
    const json = `"${"x".repeat(shift)}${escaped("😀".repeat(12_000)).slice(1)}`;
    const slices = [...charactersIn(Buffer.from(json))];
    expect(slices.every(isWhole)).toBe(true);
    expect(slices.join("")).toBe(text);
  });

  it("of backslashes only loses none", () => {
    const text = "\\".repeat(limits.jsonPieceBytes);
    expect([...charactersIn(Buffer.from(JSON.stringify(text)))].join("")).toBe(text);
    expect([...charactersIn(Buffer.from(JSON.stringify(`x${text}`)))].join("")).toBe(`x${text}`);
  });
});
