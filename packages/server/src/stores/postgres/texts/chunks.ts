import { FairLine } from "../../../domain/fair-line.js";
import { limits } from "../../../limits/index.js";
import type { Chunk, ChunkPage, ChunkPost, ChunkStore, ChunkTrim, NewChunk } from "../../../store/index.js";
import { type ChunkRow, toChunk } from "../../tables/chunk-row.js";
import { code } from "../../tables/job-state.js";
import { SharedPages } from "../../tables/shared-pages.js";
import { numbers, texts } from "../connection/arrays.js";
import type { Connection } from "../connection/connection.js";
import type { Connections } from "../connection/connections.js";
import { conflict } from "../connection/failures.js";
import { statement } from "../connection/statement.js";
import { transaction } from "../connection/transaction.js";
import type { Lanes, Verb } from "../writer.js";
import { bytesOfPieces, type PieceRow, readPieces } from "./read-pieces.js";

/** One read fetches at most this many rows; the rest waits for the next call. */
const rowsMax = 1_000;
const columns = `"index", start, output, metrics`;

/**
 * The first chunks from `from` on whose bytes fit (`$2`), and at least one: rows beyond the limit never leave the
 * database.
 */
const fittingFrom = (from: string) => `
    SELECT ${columns}, bytes FROM (
      SELECT ${columns}, sum(octet_length(output) + coalesce(octet_length(metrics), 0)) OVER w AS bytes, row_number() OVER w AS n
      FROM (SELECT ${columns} FROM chunk WHERE job_no = $1 AND "index" >= ${from} ORDER BY "index" LIMIT ${rowsMax}) c
      WINDOW w AS (ORDER BY "index")) c
    WHERE n = 1 OR bytes <= $2::bigint`;

/** The calls of a group whose workers hold their jobs, and the streams that grow by their chunks. */
const growth = `
  WITH call AS MATERIALIZED (
    SELECT * FROM unnest(:endpointNos::bigint[], :jobIds::text[], :workerNos::bigint[], :lengths::bigint[], :tokens::bigint[], :names::text[]) WITH ORDINALITY
      AS c (endpoint_no, id, worker_no, pieces, token, name, n)),
  held AS MATERIALIZED (
    SELECT c.n, c.pieces, c.token, c.name, j.no, j.starts FROM call c
    JOIN job j ON j.endpoint_no = c.endpoint_no AND j.id = c.id AND j.worker_no = c.worker_no AND j.status = ${code.IN_PROGRESS}
    ORDER BY c.n FOR SHARE OF j),
  grown AS (
    INSERT INTO stream AS s (job_no, next_index, handed_index, token, name) SELECT no, pieces, 0, token, name FROM held
    ON CONFLICT (job_no) DO UPDATE SET next_index = s.next_index + excluded.next_index, token = excluded.token, name = excluded.name
    WHERE excluded.name IS NULL OR s.name IS DISTINCT FROM excluded.name
    RETURNING job_no, next_index)`;

const growthNames = ["endpointNos", "jobIds", "workerNos", "lengths", "tokens", "names"] as const;

export const chunkSql = {
  append: statement(
    [...growthNames, "callNs", "pieceNs", "outputs", "metrics"],
    `${growth},
  put AS (
    INSERT INTO chunk (job_no, ${columns})
    SELECT h.no, g.next_index - h.pieces + p.k, h.starts, p.output, p.metrics
    FROM held h JOIN grown g ON g.job_no = h.no
    JOIN unnest(:callNs::bigint[], :pieceNs::bigint[], :outputs::text[], :metrics::text[]) AS p (n, k, output, metrics) ON p.n = h.n)
  SELECT n FROM held`,
  ),
  /** Where the chunks of a call would be, if its worker holds the job, and whether they are there. Locks nothing. */
  peek: statement(
    ["endpointNo", "jobId", "workerNo", "name"],
    `SELECT j.no AS "jobNo", j.starts AS start, coalesce(s.next_index, 0) AS "from", (s.name = :name) IS TRUE AS "isRepeat"
    FROM job j LEFT JOIN stream s ON s.job_no = j.no
    WHERE j.endpoint_no = :endpointNo AND j.id = :jobId AND j.worker_no = :workerNo AND j.status = ${code.IN_PROGRESS}`,
  ),
  /** Makes the stream longer by the chunks of a call; no `from` if they are in it already. */
  grow: statement(
    growthNames,
    `${growth}
  SELECT h.starts AS start, g.next_index - h.pieces AS "from" FROM held h LEFT JOIN grown g ON g.job_no = h.no`,
  ),
  put: statement(
    ["jobNo", "index", "start", "output", "metrics"],
    `INSERT INTO chunk (job_no, ${columns}) VALUES (:jobNo, :index, :start, :output, :metrics)`,
  ),
  /** Finds whether this very call was stored before its connection broke. */
  appended: `SELECT 1 FROM job j JOIN stream s ON s.job_no = j.no
    WHERE j.endpoint_no = $1 AND j.id = $2 AND s.token = $3`,
  handOut: `
  WITH open AS MATERIALIZED (
    SELECT job_no, handed_index, next_index FROM stream WHERE job_no = $1 AND handed_index < next_index FOR UPDATE),
  fit AS MATERIALIZED (${fittingFrom("(SELECT handed_index FROM open)")}),
  moved AS (
    UPDATE stream s SET handed_index = s.handed_index + (SELECT count(*) FROM fit) FROM open o WHERE s.job_no = o.job_no)
  SELECT f.*, o.next_index FROM fit f CROSS JOIN open o ORDER BY f."index"`,
  handBack: statement(
    ["index", "jobNo", "handedIndex", "start"],
    `UPDATE stream SET handed_index = :index::bigint WHERE job_no = :jobNo AND handed_index = :handedIndex
    AND EXISTS (SELECT 1 FROM chunk WHERE job_no = :jobNo AND "index" = :index AND start = :start)`,
  ),
  trim: `
  WITH gone AS (
    DELETE FROM chunk WHERE (job_no, "index") IN
      (SELECT job_no, "index" FROM chunk WHERE job_no IN
        (SELECT j.no FROM job j JOIN unnest($1::bigint[], $2::bigint[]) AS p (endpoint_no, no)
          ON j.endpoint_no = p.endpoint_no AND j.no = p.no WHERE j.finished_at IS NOT NULL)
      ORDER BY job_no, "index" LIMIT $3)
    RETURNING 1)
  SELECT count(*)::bigint AS count FROM gone`,
  /** A large page is read without its texts. */
  read: `SELECT "index", start, ${["output", "metrics"].map((text) => `CASE WHEN bytes <= ${limits.textReadBytesMax} THEN ${text} END AS ${text}`).join(", ")}
    FROM (${fittingFrom("$3")}) f ORDER BY "index"`,
  /** The same with its texts, one row per piece. */
  readLarge: `
  WITH fit AS MATERIALIZED (SELECT "index", start, ${readPieces.bytes("output")} AS output, metrics FROM (${fittingFrom("$3")}) f)
  SELECT "index", start, n, ${readPieces.piece("output", "n")} AS piece, CASE WHEN n = 0 THEN metrics END AS metrics
  FROM fit CROSS JOIN LATERAL ${readPieces.numbers("output")} AS n`,
};

/** `token` tells this call from any other, should its connection break. */
type Append = ChunkPost & { readonly token: number };

const growthOf = (posts: readonly Append[]) => ({
  endpointNos: numbers(posts.map(({ endpointNo }) => endpointNo)),
  jobIds: texts(posts.map(({ jobId }) => jobId)),
  workerNos: numbers(posts.map(({ workerNo }) => workerNo)),
  lengths: numbers(posts.map(({ chunks }) => chunks.length)),
  tokens: numbers(posts.map(({ token }) => token)),
  names: texts(posts.map(({ name }) => name)),
});

/** Where a call's chunks are in the stream of which start of its job. */
interface Room {
  readonly jobNo: number;
  readonly start: number;
  readonly from: number;
}

/**
 * Appends chunks of many megabytes in one commit: a message with all of them would be copied in one turn of the event
 * loop. The job and its stream are locked at the end only, because others wait for them on connections that all share.
 */
const appendOneByOne = (connection: Connection, post: Append): Promise<boolean> =>
  transaction(connection, async () => {
    const { endpointNo, jobId, workerNo, chunks, name } = post;
    const asked = { endpointNo, jobId, workerNo, name };
    const [seen] = await connection.query<Room & { isRepeat: boolean }>(...chunkSql.peek.with(asked));
    if (!seen || seen.isRepeat) return seen !== undefined;
    const { jobNo, start, from } = seen;
    for (const [k, { output, metrics }] of chunks.entries())
      await connection.query(...chunkSql.put.with({ jobNo, index: from + k, start, output, metrics }));
    const [room] = await connection.query<Room>(...chunkSql.grow.with(growthOf([post])));
    if (room?.from !== from || room.start !== start) throw conflict("the stream has changed meanwhile");
    return true;
  });

const appendVerb: Verb<[Append], boolean> = {
  key: ({ endpointNo, jobId }) => `${endpointNo}/${jobId}`,
  inKeyOrder: true,
  async run({ connection, again }, calls) {
    const posts = calls.map(([post]) => post);
    if (again) {
      const { endpointNo, jobId, token } = posts[0] as Append;
      if ((await connection.query(chunkSql.appended, [endpointNo, jobId, token])).length > 0) return [true];
    }
    const [first] = posts;
    if (first && posts.length === 1 && first.chunks.length > 1 && bytesOf(first.chunks) > limits.storedPieceBytes)
      return [await appendOneByOne(connection, first)];
    const pieces = posts.flatMap(({ chunks }, n) => chunks.map((piece, k) => ({ ...piece, n: n + 1, k })));
    const values = {
      ...growthOf(posts),
      callNs: numbers(pieces.map(({ n }) => n)),
      pieceNs: numbers(pieces.map(({ k }) => k)),
      outputs: texts(pieces.map(({ output }) => output)),
      metrics: texts(pieces.map(({ metrics }) => metrics)),
    };
    const rows = await connection.query<{ n: number }>(...chunkSql.append.with(values));
    const held = new Set(rows.map(({ n }) => n - 1));
    return posts.map((_, n) => held.has(n));
  },
};

interface Handed {
  chunks: Chunk[];
  more: boolean;
}

const handOutVerb: Verb<[Omit<ChunkPage, "fromIndex">], Handed> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ jobNo, bytesMax }] = args as [Omit<ChunkPage, "fromIndex">];
    const rows = await connection.query<ChunkRow & { next_index: number }>(chunkSql.handOut, [jobNo, bytesMax]);
    const last = rows.at(-1);
    return [{ chunks: rows.map(toChunk), more: last !== undefined && last.index + 1 < last.next_index }];
  },
};

type Undelivered = Parameters<ChunkStore["handBack"]>[0];

const handBackVerb: Verb<[Undelivered], void> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ jobNo, chunks }] = args as [Undelivered];
    const [first] = chunks;
    if (first) {
      const { index, start } = first;
      const values = { jobNo, index, handedIndex: index + chunks.length, start };
      await connection.query(...chunkSql.handBack.with(values));
    }
    return [undefined];
  },
};

const trimVerb: Verb<[ChunkTrim], number> = {
  callsMax: 1,
  async run({ connection }, [args]) {
    const [{ endpointNo, jobNo, most }] = args as [ChunkTrim];
    return [await trimChunks(connection, { endpointNos: numbers([endpointNo]), nos: numbers([jobNo]) }, most)];
  },
};

type Keys = Readonly<Record<"endpointNos" | "nos", ReturnType<typeof numbers>>>;

/** Deletes the first chunks of those of some jobs that have ended, at most so many; returns how many there were. */
export async function trimChunks(connection: Connection, { endpointNos, nos }: Keys, most: number): Promise<number> {
  const [row] = await connection.query<{ count: number }>(chunkSql.trim, [endpointNos, nos, most]);
  return Number(row?.count ?? 0);
}

const bytesOf = (pieces: readonly NewChunk[]): number =>
  pieces.reduce((sum, { output, metrics }) => sum + output.length + (metrics?.length ?? 0), 0);

type UnreadRow = Omit<ChunkRow, "output"> & { output: null };
type Reads = Pick<Connections, "read">;

type ChunkPieceRow = Pick<ChunkRow, "index" | "start" | "metrics"> & PieceRow;

/** Chunks from the rows of their pieces. */
async function chunksOf(rows: readonly ChunkPieceRow[]): Promise<Chunk[]> {
  const found: Chunk[] = [];
  for (const [index, pieces] of Map.groupBy(rows, ({ index }) => index)) {
    const { start, metrics } = pieces.find(({ n }) => n === 0) as ChunkPieceRow;
    const bytes = Buffer.concat(await bytesOfPieces(pieces));
    const output = bytes.length <= limits.chunkTextBytesMax ? bytes.toString() : bytes;
    found.push(toChunk({ index, start, output, metrics }));
  }
  return found.sort((a, b) => a.index - b.index);
}

/**
 * Chunks are appended by the worker that holds the job, and each is handed to one reader, in order, across several
 * servers too. Large pages are read on connections of their own, `largeReads`. These are few, so that large texts come
 * one after another and no small read waits.
 */
export function postgresChunkStore(reads: Reads, largeReads: Reads, words: Pick<Lanes, "call">): ChunkStore {
  const readers = new FairLine(limits.chunkReadersMax);
  const isRead = (row: ChunkRow | UnreadRow): row is ChunkRow => row.output !== null;
  const pages = new SharedPages();
  return {
    append: (post) => {
      const token = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
      return words.call(appendVerb, [{ ...post, token }], bytesOf(post.chunks));
    },
    handOut: (asked) => words.call(handOutVerb, [asked]),
    handBack: (undelivered) => words.call(handBackVerb, [undelivered]),
    trim: (asked) => words.call(trimVerb, [asked]),
    read: (page) => {
      const asked = [page.jobNo, page.bytesMax, page.fromIndex];
      return pages.read(page, async (begin) => {
        const rows = await readers.do(page.jobNo, () => {
          begin();
          return reads.read<ChunkRow | UnreadRow>(chunkSql.read, asked);
        });
        return rows.every(isRead) ? rows.map(toChunk) : chunksOf(await largeReads.read(chunkSql.readLarge, asked));
      });
    },
  };
}
