import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../scripts/postgres.mjs";
import { numbers, storable, texts } from "./arrays.js";

let server: TestPostgres;
let client: pg.Client;
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  client = new pg.Client(server.url());
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await server.end();
});

/** What the database makes of an array: its elements one by one, and how it prints them itself. */
async function sent(type: "text" | "bigint", array: Buffer): Promise<(string | null)[]> {
  const asked = `SELECT e::text AS e FROM unnest($1::${type}[]) WITH ORDINALITY AS u (e, n) ORDER BY n`;
  return (await client.query(asked, [array])).rows.map(({ e }) => e);
}

describe("An array as it is sent", () => {
  it.each([
    ["nothing", []],
    ["empty texts", ["", ""]],
    ["NULLs alone", [null, undefined]],
    ["NULLs between texts", ["a", null, "", undefined, "b"]],
    ["what is special in an array's text", ['"', "\\", "{", "}", ",", "NULL", " a "]],
    ["letters of every plane", ["é", "漢", "😀", "\u2028", "\u{10FFFF}"]],
    ["a long text", ["x".repeat(3_000_000)]],
    ["many texts", Array.from({ length: 5_000 }, (_, n) => `${n}`)],
  ])("keeps texts: %s", async (_, values) => {
    expect(await sent("text", texts(values))).toEqual(values.map((value) => value ?? null));
  });

  it("keeps bytes beside texts", async () => {
    const bytes = Buffer.from("__é漢😀__").subarray(2, -2);
    expect(await sent("text", texts(["a", bytes, null, new Uint8Array(0)]))).toEqual(["a", "é漢😀", null, ""]);
  });

  it("keeps any text", async () => {
    const text = fc.option(fc.string({ unit: "binary" }));
    await fc.assert(
      fc.asyncProperty(fc.array(text), async (values) => {
        const kept = values.map((value) => value && storable(value));
        expect(await sent("text", texts(values))).toEqual(kept);
      }),
      { numRuns: 100 },
    );
  });

  it("replaces a NUL and a lone surrogate by a sign, and keeps the rest of the group", async () => {
    expect(await sent("text", texts(["a\0b", "c\ud800d", "e"]))).toEqual(["a\uFFFDb", "c\uFFFDd", "e"]);
  });

  it.each([
    ["nothing", []],
    ["NULLs between numbers", [1, null, undefined, 2]],
    ["the largest and the smallest that we use", [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0, -1, 1]],
    ["what needs more than 32 bits", [2 ** 31, 2 ** 32, -(2 ** 31) - 1]],
  ])("keeps numbers: %s", async (_, values) => {
    const kept = values.map((value) => (value === null || value === undefined ? null : `${value}`));
    expect(await sent("bigint", numbers(values))).toEqual(kept);
  });

  it("sends booleans as 1 and 0", async () => {
    expect(await sent("bigint", numbers([true, false]))).toEqual(["1", "0"]);
  });

  it("does not round numbers that are not integers", () => {
    for (const value of [1.5, Number.NaN, Number.POSITIVE_INFINITY]) expect(() => numbers([value])).toThrow(RangeError);
  });
});
