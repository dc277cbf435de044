import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bounds, scanJson } from "./scan.js";

const wide: Bounds = { depthMax: 500, keysMax: 1_000_000, names: ["a"], elementsMax: Number.POSITIVE_INFINITY };
const scan = (text: string, bounds: Partial<Bounds> = {}) => scanJson(Buffer.from(text), { ...wide, ...bounds });

/** The result of the runtime's own parser, which every test here compares with. */
function parsed(bytes: Buffer): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(bytes.toString("utf8")) };
  } catch {
    return undefined;
  }
}

const namesOf = (value: unknown): string[] =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [];

/** The members with these names and the elements that a scan found, read through their spans. */
function found(bytes: Buffer, names: readonly string[]): { kind: string; value: unknown } | undefined {
  const result = scanJson(bytes, { ...wide, names });
  if (!result.ok) return undefined;
  const read = ({ start, end }: { start: number; end: number }) => JSON.parse(bytes.toString("utf8", start, end));
  const value =
    result.kind === "object"
      ? new Map([...result.members].map(([name, span]) => [name, read(span)]))
      : result.kind === "array"
        ? result.elements.map(read)
        : undefined;
  return { kind: result.kind, value };
}

function expected(value: unknown): { kind: string; value: unknown } {
  if (Array.isArray(value)) return { kind: "array", value };
  if (typeof value === "object" && value !== null) return { kind: "object", value: new Map(Object.entries(value)) };
  return { kind: typeof value === "string" ? "string" : "other", value: undefined };
}

const member = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("__proto__", "input", "a\\b", '"', "é😀"));
/** The same JSON with every character of its strings as an escape. */
const withEscapes = (json: string) =>
  json.replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) => {
    const units = [...Array((JSON.parse(string) as string).length).keys()].map((n) =>
      (JSON.parse(string) as string).charCodeAt(n),
    );
    return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("")}"`;
  });
const { value: jsonValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<unknown>(null, true, false, 0, -0.5, 1e21, 1.5e-7, ""),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string({ unit: "binary" }),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.array(fc.tuple(member, tie("value")), { maxLength: 5 }).map((pairs) => Object.fromEntries(pairs)),
  ),
}));
const jsonText = fc
  .tuple(jsonValue, fc.constantFrom(undefined, " ", "\t", "\n\r "))
  .map(([value, blanks]) => JSON.stringify(value, undefined, blanks?.replaceAll("\r", "")));

const bits = [..."{}[]\",:\\ \t\n\r0123456789.eE+-truefalsnNaIiy/bfux\u0000\u001f\u007f'"].map((char) =>
  Buffer.from(char),
);
const piece = fc.constantFrom(
  ...bits,
  Buffer.from("é"),
  Buffer.from("\ufeff"),
  Buffer.from("\\u12"),
  Buffer.from("//"),
);
const mutation = fc.record({
  at: fc.nat(1_000),
  remove: fc.nat(2),
  insert: fc.option(piece, { nil: Buffer.alloc(0) }),
});

function mutated(text: string, mutations: readonly { at: number; remove: number; insert: Buffer }[]): Buffer {
  let bytes = Buffer.from(text);
  for (const { at, remove, insert } of mutations) {
    const from = at % (bytes.length + 1);
    bytes = Buffer.concat([bytes.subarray(0, from), insert, bytes.subarray(from + remove)]);
  }
  return bytes;
}

describe("A scan agrees with JSON.parse", () => {
  it("on every text that is JSON, and finds the same members and elements", () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const bytes = Buffer.from(text);
        const value = JSON.parse(text);
        expect(found(bytes, namesOf(value))).toEqual(expected(value));
      }),
      { numRuns: 1_000 },
    );
  });

  it("on JSON texts that were damaged", () => {
    let invalid = 0;
    fc.assert(
      fc.property(jsonText, fc.array(mutation, { minLength: 1, maxLength: 3 }), (text, mutations) => {
        const bytes = mutated(text, mutations);
        if (!isUtf8(bytes)) return;
        const judged = parsed(bytes);
        if (!judged) invalid++;
        expect(found(bytes, namesOf(judged?.value))).toEqual(judged && expected(judged.value));
      }),
      { numRuns: 5_000 },
    );
    expect(invalid).toBeGreaterThan(500);
  });

  it("on texts made only of JSON's own characters", () => {
    const signs = fc.constantFrom("{", "}", "[", "]", ",", ":", '"a"', '"', "1", "-", "0", ".", "e", " ", "\\", "null");
    fc.assert(
      fc.property(fc.array(signs, { maxLength: 10 }), (all) => {
        const bytes = Buffer.from(all.join(""));
        const judged = parsed(bytes);
        expect(found(bytes, namesOf(judged?.value))).toEqual(judged && expected(judged.value));
      }),
      { numRuns: 5_000 },
    );
  });

  it.each(["01", "1.", ".5", "-", "+1", "1e", "0x1", "1_0", "--1", "00", "-01", "1e+", "tru", "truee", "'a'", '"\\x"'])(
    "and rejects %s",
    (text) => {
      expect(scan(text).ok).toBe(false);
      expect(scan(`[${text}]`).ok).toBe(false);
    },
  );

  it.each(["0", "-0", "0.0", "1e400", "-1E-5", "12345678901234567890", '"\\ud800"', '"\\u0000"', ' \n"a"\t'])(
    "and accepts %s",
    (text) => {
      expect(scan(text).ok).toBe(true);
    },
  );
});

describe("A scan", () => {
  it("gives the last of equal names, however they are written", () => {
    const bytes = Buffer.from('{"a":1,"\\u0061":2}');
    expect(found(bytes, ["a"])).toEqual({ kind: "object", value: new Map([["a", 2]]) });
  });

  it("gives no member that is not wanted, and a wanted one however it is written", () => {
    fc.assert(
      fc.property(
        fc.dictionary(member, jsonValue, { maxKeys: 8 }),
        fc.array(member),
        fc.boolean(),
        (all, others, asEscapes) => {
          const names = [...Object.keys(all).filter((_, n) => n % 2 === 0), ...others];
          const text = asEscapes ? withEscapes(JSON.stringify(all)) : JSON.stringify(all);
          const wanted = Object.entries(JSON.parse(text)).filter(([name]) => names.includes(name));
          expect(found(Buffer.from(text), names)).toEqual({ kind: "object", value: new Map(wanted) });
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("gives spans without the whitespace around them", () => {
    const text = '{ "input" :  {"a": [1] }  , "b":\t"x" }';
    const result = scan(text, { names: ["b", "input"] });
    const spans = result.ok ? [...result.members.values()] : [];
    expect(spans.map(({ start, end }) => text.slice(start, end))).toEqual(['{"a": [1] }', '"x"']);
  });

  it("gives no elements if they are not wanted", () => {
    expect(scan("[1,2]", { elementsMax: 0 })).toMatchObject({ ok: true, kind: "array", elements: [] });
  });

  it.each([
    ['{"a": NaN}', 6, /NaN/],
    ["[1, Infinity]", 4, /Infinity/],
    ['{"a":-Infinity}', 5, /Infinity/],
    ["", 0, /ends too early/],
    ['{"a":1', 6, /ends too early/],
    ['{"a" 1}', 5, /colon/],
    ["{a:1}", 1, /quotes/],
    ["[1,]", 3, /value is missing/],
    ['{"a":1,}', 7, /quotes/],
    ["[1 2]", 3, /comma/],
    ["1 2", 2, /follows after the end/],
    ['"abc', 0, /no end/],
    ['["a\nb"]', 3, /control character/],
    ['"\\u12g4"', 1, /escape/],
    ["[1}", 2, /comma or a closing bracket/],
  ])("reports where and why %j is not JSON", (text, at, why) => {
    const result = scan(text);
    expect(result).toMatchObject({ ok: false, at });
    expect(result.ok ? "" : result.why).toMatch(why);
  });

  it("counts positions in bytes", () => {
    expect(scan('{"é": NaN}')).toMatchObject({ ok: false, at: 7 });
  });

  it.each(["[", '{"a":'])("lets %s be nested as deep as its limit, and no deeper", (open) => {
    const close = open === "[" ? "]" : "}";
    const nested = (depth: number) => open.repeat(depth) + (open === "[" ? "" : "1") + close.repeat(depth);
    expect(scan(nested(5), { depthMax: 5 }).ok).toBe(true);
    expect(scan(nested(6), { depthMax: 5 })).toMatchObject({ ok: false, why: "it is nested deeper than 5 levels" });
  });

  it("stops early at a million levels", () => {
    expect(scan("[".repeat(1_000_000))).toMatchObject({ ok: false, at: 500 });
  });

  it("lets all objects together have as many names as its limit", () => {
    expect(scan('[{"a":1},{"b":{"c":1}}]', { keysMax: 3 }).ok).toBe(true);
    expect(scan('[{"a":1},{"b":{"c":1,"d":1}}]', { keysMax: 3 })).toMatchObject({
      ok: false,
      why: "it has more than 3 names",
    });
  });
});
