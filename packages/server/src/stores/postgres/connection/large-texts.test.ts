import { expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { texts } from "./arrays.js";
import type { Connection } from "./connection.js";
import { LargeTexts, queryLarge } from "./large-texts.js";

const size = limits.storedPieceBytes;
const atOnce = () => Buffer.from("at once");

/** The statements that a connection was sent, in order. */
async function sentBy(values: readonly unknown[]): Promise<{ text: string; values: readonly unknown[] }[]> {
  const sent: { text: string; values: readonly unknown[] }[] = [];
  const connection: Connection = {
    query: async (text, given = []) => {
      sent.push({ text, values: given });
      return [];
    },
  };
  await queryLarge(connection, "SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])", values);
  return sent;
}

it("Texts are an array in one message, however many they are, unless one is larger than a piece", () => {
  expect(texts(["x".repeat(size), "y".repeat(size), "z"])).toBeInstanceOf(Buffer);
  expect(texts(["a", "x".repeat(size + 1)])).toBeInstanceOf(LargeTexts);
});

it("A role without temporary tables sends them in one message", async () => {
  const sent: unknown[] = [];
  const connection: Connection = {
    query: async (text, values) => {
      if (text.startsWith("CREATE TEMPORARY")) throw Object.assign(new Error("permission denied"), { code: "42501" });
      sent.push(values ?? text);
      return [];
    },
  };
  await queryLarge(connection, "SELECT $1::text[]", [new LargeTexts(["x"], atOnce)]);
  expect(sent).toEqual(["BEGIN", "ROLLBACK", [Buffer.from("at once")]]);
});

it("No message carries more than a piece of a large text, and all are in one commit", async () => {
  const first = Buffer.alloc(2 * size + 1, 1);
  const sent = await sentBy([new LargeTexts([first, null, "é"], atOnce), 5, Buffer.from("small")]);
  expect(sent[0]?.text).toBe("BEGIN");
  expect(sent.at(-1)?.text).toBe("COMMIT");
  const pieces = sent.filter(({ text }) => text.startsWith("INSERT"));
  const told = pieces.map(({ values: [param, n, k, piece] }) => [param, n, k, (piece as Uint8Array | null)?.length]);
  expect(told).toEqual([
    [1, 0, 0, size],
    [1, 0, 1, size],
    [1, 0, 2, 1],
    [1, 1, 0, undefined],
    [1, 2, 0, 2],
  ]);
  const statement = sent.at(-2);
  expect(statement?.values).toEqual([null, 5, Buffer.from("small")]);
  expect(statement?.text).toMatch(
    /unnest\(coalesce\(\$1::text\[\], \(SELECT .*param = 1.*\$2::bigint\[\], \$3::text\[\]\)$/s,
  );
});

it("A text of a multiple of a piece's size has no empty piece, and an empty text has one", () => {
  const lengths = [...new LargeTexts([Buffer.alloc(2 * size), ""], atOnce).pieces()].map(([n, , piece]) => [
    n,
    piece?.length,
  ]);
  expect(lengths).toEqual([
    [0, size],
    [0, size],
    [1, 0],
  ]);
});
