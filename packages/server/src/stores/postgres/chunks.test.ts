import { describe, expect, it } from "vitest";
import { chunkSql, postgresChunkStore } from "./chunks.js";

/** Connections that answer every read with these rows, and note its statement. */
function connections(rows: readonly unknown[]) {
  const asked: string[] = [];
  const read = async (text: string) => {
    asked.push(text);
    return rows as never;
  };
  return { read, asked };
}

const row = (output: string | null) => ({ index: 0, start: 1, output, metrics: null });

describe("A page of chunks", () => {
  it("that is small is read at once, on the connections of all reads", async () => {
    const [reads, largeReads] = [connections([row("1"), row("2")]), connections([])];
    const chunks = await postgresChunkStore(reads, largeReads, {} as never).read(1, 0, 100);
    expect(chunks.map(({ output }) => output)).toEqual(["1", "2"]);
    expect([reads.asked, largeReads.asked]).toEqual([[chunkSql.read], []]);
  });

  it("that is large is read on the few connections for large texts", async () => {
    const [reads, largeReads] = [connections([row("1"), row(null)]), connections([row("1"), row('"large"')])];
    const chunks = await postgresChunkStore(reads, largeReads, {} as never).read(1, 0, 100);
    expect(chunks.map(({ output }) => output)).toEqual(["1", '"large"']);
    expect([reads.asked, largeReads.asked]).toEqual([[chunkSql.read], [chunkSql.readLarge]]);
  });
});
