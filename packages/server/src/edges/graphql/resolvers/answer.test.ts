import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { withTurns } from "../../../testing/turns-fixture.js";
import { Answer, jsonPieces } from "./answer.js";

const free = () => new Answer(async () => {});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = [];
  for await (const item of items) got.push(item);
  return got;
}

describe("A long list of an answer", () => {
  const count = 20 * limits.listSliceItems;

  it("lets other work run in between, and shares turns with all other lists", async () => {
    const [one, other] = [free(), free()];
    const make = (answer: Answer) => all(answer.list(Array(count).fill(1), (each) => each));
    const alone = await withTurns(() => make(one));
    expect(alone.value).toHaveLength(count);
    expect(alone.waits).toBe(20);
    const both = await withTurns(() => Promise.all([make(one), make(other), make(one)]));
    expect(both.waits).toBe(60);
  });

  it("waits for memory before it is made, and is not made without it", async () => {
    const asked: number[] = [];
    let isMade = false;
    const answer = new Answer(async (bytes) => {
      asked.push(bytes);
      throw new Error("no room");
    });
    const items = Array(limits.graphqlSmallEntries + 1).fill(1);
    const made = answer.list(items, () => {
      isMade = true;
    });
    await expect(all(made)).rejects.toThrow("no room");
    expect([asked, isMade]).toEqual([[limits.graphqlLargeBytes], false]);
  });

  it("needs no extra memory if it is short", async () => {
    const asked: number[] = [];
    const answer = new Answer(async (bytes) => void asked.push(bytes));
    await all(answer.list(Array(limits.graphqlSmallEntries).fill(1), (each) => each));
    await answer.hasRoom();
    expect(asked).toEqual([]);
  });
});

describe("The JSON of an answer", () => {
  it.each([
    [null],
    ['\u2028 " \\ é'],
    [{ a: [1, true, null, { b: [] }, {}], ü: "x", c: undefined, d: [undefined] }],
    [
      Object.assign(Object.create(null), {
        data: { list: Array.from({ length: 9_000 }, (_, n) => ({ n, s: "é".repeat(n % 50) })) },
      }),
    ],
  ])("is that of JSON.stringify", async (value) => {
    expect(await text(jsonPieces(value))).toBe(JSON.stringify(value));
  });

  it("comes in pieces of bounded size, with turns between them", async () => {
    const value = Array.from({ length: 5_000 }, () => ({ name: "x".repeat(100) }));
    const { value: pieces, waits } = await withTurns(() => all(jsonPieces(value)));
    for (const piece of pieces) expect(piece.length).toBeLessThan(limits.listSliceBytes + 200);
    expect(waits).toBe(pieces.length - 1);
  });
});
