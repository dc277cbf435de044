import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../limits/index.js";
import { partOf, splitChunk } from "./json.js";
import { cutOutput, ofNoPart, withParts } from "./split.js";

afterEach(() => void vi.restoreAllMocks());

/** Whether a string has no lone surrogate. */
const isWhole = (text: string) => !/\p{Surrogate}/u.test(text);

describe("A chunk that is too large is cut", () => {
  const bytesMax = 40;
  const text = fc.string({
    unit: fc.oneof(
      fc.constantFrom("a", "é", "漢", "😀", '"', "\\", "\n", "\u0000", "\uFEFF"),
      fc.string({ unit: "grapheme", maxLength: 1 }),
    ),
    maxLength: 400,
  });

  const cutTo = (most: number, output: string) => cutOutput(Buffer.from(output), most).map((piece) => textOf(piece));
  const textOf = (piece: Uint8Array) => Buffer.from(piece).toString();

  function pieces(output: string): string[] {
    const cut = cutTo(bytesMax, output);
    for (const piece of cut) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(bytesMax);
    return cut;
  }

  it("not at all if it fits", async () => {
    const output = `"${"x".repeat(bytesMax - 2)}"`;
    for (const fitting of [output, "1", `{"a":"${"x".repeat(bytesMax - 8)}"}`]) {
      const span = { start: 0, end: fitting.length };
      expect(await splitChunk(Buffer.from(fitting), span, bytesMax)).toEqual([fitting]);
    }
    expect(pieces(`"${"x".repeat(bytesMax - 1)}"`)).toHaveLength(2);
  });

  it("between the characters of a string, and joins to the same string", () => {
    fc.assert(
      fc.property(text, (whole) => {
        const strings = pieces(JSON.stringify(whole)).map((piece) => JSON.parse(piece) as string);
        expect(strings.join("")).toBe(whole);
        for (const string of strings) expect(isWhole(string)).toBe(isWhole(whole));
      }),
      { numRuns: 500 },
    );
  });

  it("never through a pair of surrogates, wherever the cut would fall", () => {
    for (let before = 0; before < 50; before++) {
      const whole = `${"x".repeat(before)}${"😀".repeat(20)}`;
      const strings = pieces(JSON.stringify(whole)).map((piece) => JSON.parse(piece) as string);
      expect([strings.every((string) => isWhole(string)), strings.join("")]).toEqual([true, whole]);
    }
  });

  it("never through an escape or a pair of them, and keeps its text", () => {
    const unit = fc.constantFrom(
      "a",
      "é",
      "😀",
      '\\"',
      "\\\\",
      "\\/",
      "\\u0061",
      "\\ud83d\\ude00",
      "\\uD83D",
      "\\uDE00",
    );
    fc.assert(
      fc.property(fc.array(unit, { minLength: 10, maxLength: 80 }), (units) => {
        const inner = pieces(`"${units.join("")}"`).map((piece) => piece.slice(1, -1));
        expect(inner.join("")).toBe(units.join(""));
        for (const piece of inner) expect(() => JSON.parse(`"${piece}"`)).not.toThrow();
        const halves = inner.filter((piece, at) => /\\ud83d$/.test(piece) && /^\\ude00/.test(inner[at + 1] ?? ""));
        expect(halves).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it("between the elements of an array, and joins to the same elements", () => {
    const element = fc.oneof(fc.integer(), fc.string({ maxLength: 4 }), fc.constantFrom(null, [], { a: [1] }));
    fc.assert(
      fc.property(fc.array(element, { maxLength: 60 }), fc.constantFrom("", " "), (whole, blank) => {
        const cut = pieces(JSON.stringify(whole, undefined, blank)).map((piece) => JSON.parse(piece) as unknown[]);
        expect(cut.flat(1)).toEqual(whole);
      }),
    );
  });

  it("between elements, with their original text", () => {
    const elements = ["12345678901234567890", "1e400", '"\\u0061"', '{"b":1,"a":2,"b":3}', '"xxxxxxxx"'];
    const cut = pieces(`[${elements.join(",")}]`);
    expect(cut.map((piece) => piece.slice(1, -1)).join(",")).toBe(elements.join(","));
    expect(cut.length).toBeGreaterThan(1);
  });

  it("to an empty array if it is one, however long", () => {
    expect(pieces(`[${" ".repeat(2 * bytesMax)}]`)).toEqual(["[]"]);
  });

  it.each([
    ["an object", JSON.stringify({ a: "é".repeat(50), b: [1, 2, 3] })],
    ["an array with a large element", JSON.stringify(["small", '"'.repeat(60)])],
    ["a long number", "1".repeat(100)],
  ])("into pieces of its text if it is %s", (_, output) => {
    const strings = pieces(output).map((piece) => JSON.parse(piece) as string);
    expect(strings.join("")).toBe(output);
    expect(strings.length).toBeGreaterThan(1);
  });

  const [fits, isCut] = [`"${"é".repeat(200_000)}"`, `"${"é".repeat(2_000_000)}"`];
  it.each([
    ["not cut if it fits", fits, [fits]],
    ["cut with the same result as on this thread", isCut, cutTo(limits.chunkBytesMax, isCut)],
  ])("as bytes: %s", async (_, output, expected) => {
    const word = Buffer.from(`{"output":${output}}`);
    const cut = await splitChunk(word, { start: 10, end: word.length - 1 }, limits.chunkBytesMax);
    expect(cut.every((piece) => piece instanceof Uint8Array)).toBe(true);
    expect(cut.map((piece) => textOf(piece as Uint8Array)).join() === expected.join()).toBe(true);
  });

  it("at the real size into few pieces", () => {
    const whole = `${"漢".repeat(2_000_000)}"\\`;
    const strings = cutTo(limits.chunkBytesMax, JSON.stringify(whole));
    expect(strings.every((piece) => Buffer.byteLength(piece) <= limits.chunkBytesMax)).toBe(true);
    expect(strings.map((piece) => JSON.parse(piece)).join("") === whole).toBe(true);
    expect(strings.length).toBeLessThan(9);
  });
});

describe("A piece", () => {
  it.each([undefined, "{}", '{"tokens": 3}', '{"part":9,"parts":9}'])("is known by its metrics, with %s", (metrics) => {
    const partsOf = (part: number) => partOf({ output: '"x"', metrics: withParts(metrics, part, 3) });
    expect(partsOf(0)).toEqual({ isFirst: true, isLast: false, parts: 3 });
    expect(partsOf(2)).toEqual({ isFirst: false, isLast: true, parts: 3 });
    expect(JSON.parse(withParts(metrics, 1, 3))).toMatchObject({ part: 1, parts: 3 });
  });

  it("is no chunk whose worker says that it is one", () => {
    const metrics = ofNoPart('{"a":1,"part":0,"parts":99}');
    expect(partOf({ output: '"x"', metrics })).toBeUndefined();
    expect(JSON.parse(metrics)).toEqual({ a: 1, part: 0, parts: 99 });
    expect(ofNoPart('{"parts":99}')).toBe('{"parts":99}');
  });
});
