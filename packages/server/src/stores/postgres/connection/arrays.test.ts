import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../../../scripts/postgres.mjs";
import { limits } from "../../../limits/index.js";
import { numbers, storable, texts } from "./arrays.js";
import { Connections } from "./connections.js";
import { LargeTexts } from "./large-texts.js";

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

/** Reads an array through the database: its elements one by one, and then the database's own text of it. */
async function sent(type: "text" | "bigint", array: Buffer): Promise<(string | null)[]> {
  const asked = `SELECT e::text AS e FROM unnest($1::${type}[]) WITH ORDINALITY AS u (e, n) ORDER BY n`;
  return (await client.query(asked, [array])).rows.map(({ e }) => e);
}

/** An array of texts that fits into one message. */
function small(values: Parameters<typeof texts>[0]): Buffer {
  const array = texts(values);
  if (array instanceof LargeTexts) throw new Error("these texts are sent in pieces");
  return array;
}

describe("An array in a message", () => {
  it.each([
    ["nothing", []],
    ["empty texts", ["", ""]],
    ["NULLs alone", [null, undefined]],
    ["NULLs between texts", ["a", null, "", undefined, "b"]],
    ["the special characters of an array's text", ['"', "\\", "{", "}", ",", "NULL", " a "]],
    ["characters of every plane", ["é", "漢", "😀", "\u2028", "\u{10FFFF}"]],
    ["a long text", ["x".repeat(limits.storedPieceBytes)]],
    ["many texts", Array.from({ length: 5_000 }, (_, n) => `${n}`)],
  ])("keeps texts: %s", async (_, values) => {
    expect(await sent("text", small(values))).toEqual(values.map((value) => value ?? null));
  });

  it("keeps bytes beside texts", async () => {
    const bytes = Buffer.from("__é漢😀__").subarray(2, -2);
    expect(await sent("text", small(["a", bytes, null, new Uint8Array(0)]))).toEqual(["a", "é漢😀", null, ""]);
  });

  it("keeps any text", async () => {
    const text = fc.option(fc.string({ unit: "binary" }));
    await fc.assert(
      fc.asyncProperty(fc.array(text), async (values) => {
        const kept = values.map((value) => value && storable(value));
        expect(await sent("text", small(values))).toEqual(kept);
      }),
      { numRuns: 100 },
    );
  });

  it("replaces a NUL and a lone surrogate, and keeps the rest of the group", async () => {
    expect(await sent("text", small(["a\0b", "c\ud800d", "e"]))).toEqual(["a\uFFFDb", "c\uFFFDd", "e"]);
  });

  it.each([
    ["nothing", []],
    ["NULLs between numbers", [1, null, undefined, 2]],
    ["the largest and the smallest numbers that we use", [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0, -1, 1]],
    ["numbers of more than 32 bits", [2 ** 31, 2 ** 32, -(2 ** 31) - 1]],
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

describe("Large texts", () => {
  const size = limits.storedPieceBytes;
  const asked = "SELECT e FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS u (e, other, n) ORDER BY n";

  it.each([
    ["one", ["x".repeat(3 * size + 7)]],
    ["a text whose characters cross piece boundaries", [`a${"漢".repeat(size)}`]],
    ["bytes among small texts and NULLs", ["a", Buffer.from("é".repeat(size)), null, "", "z"]],
    ["many", Array.from({ length: 8 }, (_, n) => `${n}`.repeat(size + 1))],
  ])("arrive as they were: %s", async (_, values) => {
    const connections = new Connections(server.url(), 1);
    try {
      for (let n = 0; n < 2; n++) {
        const rows = await connections.lend((connection) =>
          connection.query<{ e: string | null }>(asked, [texts(values), numbers(values.map((_, at) => at))]),
        );
        const arrived = rows.map(({ e }) => e);
        const same = values.map((value, at) => arrived[at] === (value === null ? null : value.toString()));
        expect([arrived.length, same]).toEqual([values.length, values.map(() => true)]);
        // A temporary table left behind would keep old transaction ids from being frozen.
        const [left] = await connections.read<{ table: string | null }>(
          "SELECT to_regclass('pg_temp.text_piece') AS table",
          [],
        );
        expect(left?.table).toBeNull();
      }
    } finally {
      await connections.close();
    }
  });

  it("leave nothing behind if their statement fails", async () => {
    const connections = new Connections(server.url(), 1);
    const large = texts(["x".repeat(2 * size)]);
    try {
      const failing = connections.lend((connection) => connection.query("SELECT 1 / 0, $1::text[]", [large]));
      await expect(failing).rejects.toThrow(/division by zero/);
      const [row] = await connections.read<{ n: number }>("SELECT cardinality($1::text[]) AS n", [large]);
      expect(row?.n).toBe(1);
    } finally {
      await connections.close();
    }
  });
});
