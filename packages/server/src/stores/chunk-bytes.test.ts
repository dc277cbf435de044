import { describe, expect, it } from "vitest";
import type { ChunkStore } from "../store/index.js";
import { postgresChunkStore } from "./postgres/texts/chunks.js";
import { openForWriting } from "./sqlite/driver.js";
import { migrate } from "./sqlite/migrate.js";
import { sqliteChunkStore } from "./sqlite/texts/chunks.js";
import { TextCutter } from "./sqlite/texts/stored-texts.js";
import type { CallSize } from "./sqlite/writing/writer.js";

/** The size in bytes that the store declared for each write. */
const asked: number[] = [];
const note = async (_verb: unknown, _args: unknown, bytes: number) => void asked.push(bytes);
const word = async (_verb: unknown, _args: unknown, { bytes = 0 }: CallSize) => void asked.push(bytes);

function sqlite(): ChunkStore {
  const db = openForWriting(":memory:");
  migrate(db);
  return sqliteChunkStore(db, { word } as never, new TextCutter(db));
}

describe.each([
  ["SQLite", sqlite],
  ["PostgreSQL", () => postgresChunkStore({} as never, {} as never, { call: note } as never)],
])("A write of chunks to %s", (_, open) => {
  it("counts their outputs and metrics against the bound of the queue", async () => {
    asked.length = 0;
    await open().append({
      endpointNo: 1,
      jobId: "job",
      workerNo: 1,
      chunks: [{ output: '"abc"', metrics: '{"a":1}' }, { output: "12" }],
    });
    expect(asked).toEqual([14]);
  });
});
