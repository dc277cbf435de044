import type { JobTexts } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import type { JobReader } from "../../store/index.js";
import { type JobRow, jobTextSql, joined, textsInPlace, toJob } from "../tables/job-row.js";
import type { Connections } from "./connections.js";

/** The SQL that reads jobs with their texts. */
export const jobSql = jobTextSql(textsInPlace);

const { jobColumnsBounded, textBytes } = jobSql;
const whole = (text: string) => `CASE WHEN ${textBytes} <= $4::bigint THEN o.${text} || '' END AS whole_${text}`;
const pieceChars = limits.textPieceBytes;

/**
 * A job and its large texts, one row per piece. `|| ''` fetches a text once; otherwise each piece would fetch and
 * decompress the whole.
 */
const textsSql = `
  WITH found AS MATERIALIZED (
    SELECT ${jobColumnsBounded}, ${whole("output")}, ${whole("error")}, ${whole("progress")}
    FROM job j ${joined} WHERE j.endpoint_no = $1 AND j.id = $2 AND j.expires_at > $3)
  SELECT no, endpoint_no, id, place, status, low_priority, starts, excused, retries, worker_no, worker_id, created_at, queued_at,
    taken_at, finished_at, deadline_at, ttl_end_at, expires_at, execution_timeout_ms, retention_ms, has_webhook, stop_wanted,
    output, error, progress, unread_bytes, part.name, part.n, substr(part.whole, part.n * ${pieceChars} + 1, ${pieceChars}) AS piece
  FROM found LEFT JOIN LATERAL (
    SELECT texts.name, texts.whole, n FROM (VALUES ('output', whole_output), ('error', whole_error), ('progress', whole_progress))
      AS texts (name, whole), generate_series(0, (octet_length(texts.whole) - 1) / ${pieceChars}) AS n) part ON unread_bytes > 0`;

interface PieceRow extends JobRow {
  name: keyof JobTexts | null;
  n: number;
  piece: string;
}

const inputSql = `
  WITH found AS MATERIALIZED (SELECT body || '' AS whole FROM job_input WHERE job_no = $1)
  SELECT n, substr(whole, n * ${pieceChars} + 1, ${pieceChars}) AS piece
  FROM found, generate_series(0, (octet_length(whole) - 1) / ${pieceChars}) AS n`;

const inOrder = (rows: { n: number; piece: string }[]): Uint8Array[] | undefined =>
  rows.length === 0 ? undefined : rows.sort((a, b) => a.n - b.n).map(({ piece }) => Buffer.from(piece));

/** Reads large texts on connections of their own, so that small reads never wait for them. */
export function postgresTextReader(reads: Connections): Pick<JobReader, "findTexts" | "input"> {
  return {
    async findTexts(endpointNo, jobId, now, bytesMax) {
      const rows = await reads.read<PieceRow>(textsSql, [endpointNo, jobId, now, bytesMax]);
      if (!rows[0]) return undefined;
      const job = toJob(rows[0]);
      if (rows[0].name === null) return { job, texts: undefined };
      const piecesOf = (name: keyof JobTexts) => inOrder(rows.filter((row) => row.name === name));
      return { job, texts: { output: piecesOf("output"), error: piecesOf("error"), progress: piecesOf("progress") } };
    },
    input: async (jobNo) => inOrder(await reads.read<{ n: number; piece: string }>(inputSql, [jobNo])),
  };
}
