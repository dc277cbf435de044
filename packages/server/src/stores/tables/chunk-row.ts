import type { Chunk } from "../../store.js";

export interface ChunkRow {
  index: number;
  start: number;
  output: string;
  metrics: string | null;
}

const toChunk = (row: ChunkRow): Chunk => ({
  index: row.index,
  start: row.start,
  output: row.output,
  metrics: row.metrics ?? undefined,
});

/** The first chunks whose bytes fit, and one at least. */
export function fitting(rows: Iterable<ChunkRow>, bytesMax: number): Chunk[] {
  const chunks: Chunk[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += Buffer.byteLength(row.output) + Buffer.byteLength(row.metrics ?? "");
    if (chunks.length > 0 && bytes > bytesMax) break;
    chunks.push(toChunk(row));
  }
  return chunks;
}
