import { limits } from "../../../limits/index.js";
import type { Chunk, ChunkPage, ChunkPost, ChunkStore, ChunkTrim, NewChunk } from "../../../store/index.js";
import { turns } from "../../../turns.js";
import { type ChunkRow, toChunk } from "../../tables/chunk-row.js";
import { code } from "../../tables/job-state.js";
import { SharedPages } from "../../tables/shared-pages.js";
import type { Database } from "../driver.js";
import { prepareNamed, prepareOrdered } from "../statement.js";
import { sizeOf } from "../writing/parcel.js";
import type { Verbs } from "../writing/transactions.js";
import type { GroupWriter } from "../writing/writer.js";
import { type StorableText, type TextCutter, type TextPiece, textsInPieces, textValues } from "./stored-texts.js";

/** One read fetches at most this many rows; the rest waits for the next call. */
const rowsMax = 1_000;

const { bytes, whole } = textsInPieces;

type StorableChunk = Omit<NewChunk, "output"> & { readonly output: StorableText };
type StorablePost = Omit<ChunkPost, "chunks"> & { readonly chunks: readonly StorableChunk[] };
type ChunkStart = Pick<Chunk, "index" | "start">;

/** SQL: deletes the first chunks of a job, at most so many. */
export const trimChunks = `DELETE FROM chunk WHERE job_no = ?1
  AND "index" IN (SELECT "index" FROM chunk WHERE job_no = ?1 ORDER BY "index" LIMIT ?2)`;

class SqliteChunks {
  readonly #sql;
  constructor(db: Database) {
    this.#sql = {
      holder: db.prepare(
        `SELECT no, starts FROM job WHERE endpoint_no = ? AND id = ? AND worker_no = ? AND status = ${code.IN_PROGRESS}`,
      ),
      open: db.prepare("INSERT INTO stream (job_no, next_index, handed_index) VALUES (?, 0, 0) ON CONFLICT DO NOTHING"),
      grow: db.prepare(`UPDATE stream SET next_index = next_index + ?1, name = ?2
        WHERE job_no = ?3 AND (?2 IS NULL OR name IS NOT ?2) RETURNING next_index`),
      insert: prepareOrdered(
        db,
        ["jobNo", "index", "start", "output", "outputTextNo", "metrics"],
        `INSERT INTO chunk (job_no, "index", start, output, output_text, metrics)
        VALUES (:jobNo, :index, :start, CAST(:output AS TEXT), :outputTextNo, :metrics)`,
      ),
      stream: db.prepare("SELECT next_index, handed_index FROM stream WHERE job_no = ?"),
      sizes: db.prepare(`SELECT ${bytes("c.output")} + coalesce(octet_length(metrics), 0) AS bytes FROM chunk c
        WHERE job_no = ? AND "index" >= ? ORDER BY "index" LIMIT ${rowsMax}`),
      from: db.prepare(`SELECT "index", start, metrics,
          CASE WHEN ${bytes("c.output")} <= ${limits.chunkTextBytesMax} THEN output
            ELSE CAST(${whole("c.output")} AS BLOB) END AS output
        FROM chunk c WHERE job_no = ? AND "index" >= ? ORDER BY "index" LIMIT ?`),
      trim: db.prepare(`${trimChunks} AND EXISTS (SELECT 1 FROM job WHERE no = ?1 AND finished_at IS NOT NULL)`),
      hand: db.prepare("UPDATE stream SET handed_index = ? WHERE job_no = ?"),
      handBack: prepareNamed(
        db,
        ["index", "jobNo", "handedIndex", "start"],
        `UPDATE stream SET handed_index = :index WHERE job_no = :jobNo AND handed_index = :handedIndex
        AND EXISTS (SELECT 1 FROM chunk WHERE job_no = :jobNo AND "index" = :index AND start = :start)`,
      ),
    };
  }

  append({ endpointNo, jobId, workerNo, chunks, name }: StorablePost): boolean {
    const job = this.#sql.holder.get(endpointNo, jobId, workerNo);
    if (!job) return false;
    this.#sql.open.run(job.no);
    const grown = this.#sql.grow.get(chunks.length, name ?? null, job.no);
    if (!grown) return true; // already stored
    const { next_index: next } = grown;
    chunks.forEach(({ output, metrics }, at) => {
      const index = next - chunks.length + at;
      this.#sql.insert.run(job.no, index, job.starts, ...textValues(output), metrics ?? null);
    });
    return true;
  }

  handOut({ jobNo, bytesMax }: Omit<ChunkPage, "fromIndex">): { chunks: Chunk[]; more: boolean } {
    const stream = this.#sql.stream.get(jobNo);
    if (!stream || stream.handed_index === stream.next_index) return { chunks: [], more: false };
    const chunks = this.read({ jobNo, fromIndex: stream.handed_index, bytesMax });
    const handed = stream.handed_index + chunks.length;
    this.#sql.hand.run(handed, jobNo);
    return { chunks, more: handed < stream.next_index };
  }

  handBack({ jobNo, chunks }: { readonly jobNo: number; readonly chunks: readonly ChunkStart[] }): void {
    const first = chunks[0];
    if (!first) return;
    const { index, start } = first;
    this.#sql.handBack.run({ index, jobNo, handedIndex: index + chunks.length, start });
  }

  trim({ jobNo, most }: ChunkTrim): number {
    return Number(this.#sql.trim.run(jobNo, most).changes);
  }

  /** The first chunks whose bytes fit, and at least one; their sizes are read without their texts. */
  read({ jobNo, fromIndex, bytesMax }: ChunkPage): Chunk[] {
    let count = 0;
    let bytes = 0;
    for (const { bytes: more } of this.#sql.sizes.iterate(jobNo, fromIndex) as Iterable<{ bytes: number }>) {
      if (count > 0 && bytes + more > bytesMax) break;
      bytes += more;
      count++;
    }
    return count === 0 ? [] : (this.#sql.from.all(jobNo, fromIndex, count) as ChunkRow[]).map(toChunk);
  }
}

/** The writes of chunks. */
export function chunkVerbs(db: Database): Verbs {
  const chunks = new SqliteChunks(db);
  return {
    appendChunks: chunks.append.bind(chunks),
    handOut: chunks.handOut.bind(chunks),
    handBack: chunks.handBack.bind(chunks),
    trim: chunks.trim.bind(chunks),
  };
}

const bytesOf = (chunks: readonly NewChunk[]): number =>
  chunks.reduce((sum, { output, metrics }) => sum + sizeOf(output) + sizeOf(metrics), 0);

/** Chunks are appended by the worker that holds the job, and each is handed to one reader, in order. */
export function sqliteChunkStore(readDb: Database, writer: GroupWriter, texts: TextCutter): ChunkStore {
  const reads = new SqliteChunks(readDb);
  const pages = new SharedPages();
  return {
    append: (post) => {
      const { endpointNo, chunks } = post;
      const pieces: TextPiece[] = [];
      const bytes = bytesOf(chunks);
      // a large chunk comes cut already, and its parts together are one call
      const inPlaceMax = bytes > limits.storedPieceBytes ? limits.largeCallBytes : limits.storedPieceBytes;
      const cut = chunks.map((chunk) => ({ ...chunk, output: texts.cut(chunk.output, pieces, inPlaceMax) }));
      return writer.word("appendChunks", [{ ...post, chunks: cut }], { bytes, endpointNo, pieces });
    },
    handOut: (asked) => writer.word("handOut", [asked]),
    // only their places: the thread does not need the outputs
    handBack: ({ jobNo, chunks }) =>
      writer.word("handBack", [{ jobNo, chunks: chunks.map(({ index, start }) => ({ index, start })) }]),
    trim: (asked) => writer.word("trim", [asked]),
    read: (page) =>
      pages.read(page, (begin) =>
        turns.run(["chunks"], () => {
          begin();
          return reads.read(page);
        }),
      ),
  };
}
