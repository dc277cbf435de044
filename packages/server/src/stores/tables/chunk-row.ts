import type { JsonText } from "../../domain/jobs/job.js";
import type { Chunk } from "../../store/index.js";

export interface ChunkRow {
  index: number;
  start: number;
  output: JsonText;
  metrics: string | null;
}

export const toChunk = (row: ChunkRow): Chunk => ({
  index: row.index,
  start: row.start,
  output: row.output,
  metrics: row.metrics ?? undefined,
});
