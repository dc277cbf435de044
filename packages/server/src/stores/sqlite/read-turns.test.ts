import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { sqliteChunkStore } from "./chunks.js";
import { openForWriting } from "./driver.js";
import { ReadTurns } from "./read-turns.js";
import { migrate } from "./schema.js";

/** In which turn of the event loop, counted from now, each of these ends. */
async function turnsOf(calls: readonly Promise<unknown>[]): Promise<number[]> {
  const ended: number[] = [];
  let now = 0;
  let left = calls.length;
  for (const [n, call] of calls.entries()) {
    void call.then(() => {
      ended[n] = now;
      left--;
    });
  }
  for (; left > 0; now++) await turn();
  return ended;
}

/** How many end in the turn in which most of them do: it may span two turns of a budget. */
const most = (turns: readonly number[]) => Math.max(...turns.map((each) => turns.filter((n) => n === each).length));

describe("Reads in turns", () => {
  it("run at once while there is budget left, and small ones leave budget for others", async () => {
    const turns = new ReadTurns(10);
    const calls = Array.from({ length: 9 }, (_, value) => turns.run(() => ({ value, bytes: 1 })));
    expect(await turnsOf(calls)).toEqual(Array.from({ length: 9 }, () => 0));
  });

  it("wait for later turns, in the order of the calls", async () => {
    const turns = new ReadTurns(10);
    const read: number[] = [];
    const calls = Array.from({ length: 6 }, (_, value) =>
      turns.run(() => {
        read.push(value);
        return { value, bytes: 6 };
      }),
    );
    const ended = await turnsOf(calls);
    expect(read).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await Promise.all(calls)).toEqual(read);
    expect(most(ended)).toBeLessThanOrEqual(2 * 2);
  });

  it("that fail fail alone", async () => {
    const turns = new ReadTurns(1);
    const fail = () => {
      throw new Error("no such table");
    };
    const calls = [() => ({ value: 1, bytes: 1 }), fail, () => ({ value: 2, bytes: 1 })].map((read) => turns.run(read));
    const outcomes = (await Promise.allSettled(calls)).map(({ status }) => status);
    expect(outcomes).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });
});

describe("Large chunks", () => {
  const db = openForWriting(":memory:");
  migrate(db);
  const add = db.prepare(`INSERT INTO chunk (job_no, "index", start, output) VALUES (1, ?, 1, ?)`);
  const store = sqliteChunkStore(db, {} as never, {} as never);
  for (let n = 0; n < 3; n++) add.run(n, `"${"x".repeat(limits.chunkBytesMax - 2)}"`);

  it("are read by one reader per turn", async () => {
    const ended = await turnsOf(Array.from({ length: 10 }, () => store.read(1, 0, limits.chunkBytesMax)));
    expect(most(ended)).toBeLessThanOrEqual(2);
  });

  it("come as bytes, small ones as texts", async () => {
    add.run(3, "4");
    const chunks = await store.read(1, 2, 2 * limits.chunkBytesMax);
    expect(chunks.map(({ output }) => output instanceof Uint8Array)).toEqual([true, false]);
  });
});
