import { describe, expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { withTurns } from "../../../testing/turns-fixture.js";
import { openForWriting } from "../driver.js";
import { migrate } from "../migrate.js";
import { sqliteChunkStore } from "./chunks.js";

describe("Large chunks", () => {
  const db = openForWriting(":memory:");
  migrate(db);
  const add = db.prepare(`INSERT INTO chunk (job_no, "index", start, output) VALUES (1, ?, 1, ?)`);
  const store = sqliteChunkStore(db, {} as never, {} as never);
  for (let n = 0; n < 3; n++) add.run(n, `"${"x".repeat(limits.chunkBytesMax - 2)}"`);

  it("are read page by page, each in a turn of its own", async () => {
    const read = (_: unknown, n: number) => store.read({ jobNo: 1, fromIndex: 0, bytesMax: limits.chunkBytesMax + n });
    const { value, waits } = await withTurns(() => Promise.all(Array.from({ length: 10 }, read)));
    expect([value.map((chunks) => chunks.length), waits]).toEqual([Array(10).fill(1), 10]);
  });

  it("are read once for all readers who wait for the same page", async () => {
    const read = () => store.read({ jobNo: 1, fromIndex: 0, bytesMax: limits.chunkBytesMax });
    const { value, waits } = await withTurns(() => Promise.all(Array.from({ length: 10 }, read)));
    expect([value.map((chunks) => chunks.length), waits]).toEqual([Array(10).fill(1), 1]);
  });

  it("come as bytes, small ones as texts", async () => {
    add.run(3, "4");
    const chunks = await store.read({ jobNo: 1, fromIndex: 2, bytesMax: 2 * limits.chunkBytesMax });
    expect(chunks.map(({ output }) => output instanceof Uint8Array)).toEqual([true, false]);
  });
});
