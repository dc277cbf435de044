import type { JobTexts } from "../../../domain/jobs/job.js";
import type { JobReader } from "../../../store/index.js";
import { type JobRow, jobTextSql, joined, textsInPlace, toJob } from "../../tables/job-row.js";
import type { Connections } from "../connection/connections.js";
import { statement } from "../connection/statement.js";
import { bytesOfPieces, type PieceRow, readPieces } from "./read-pieces.js";

/** The SQL that reads jobs with their texts. */
export const jobSql = jobTextSql(textsInPlace);

const { jobColumnsBounded, textBytes } = jobSql;
const whole = (text: string) =>
  `CASE WHEN ${textBytes} <= :bytesMax::bigint THEN ${readPieces.bytes(`o.${text}`)} END AS whole_${text}`;

/** A job and its large texts, one row per piece. */
const textsSql = statement(
  ["endpointNo", "jobId", "now", "bytesMax"],
  `
  WITH found AS MATERIALIZED (
    SELECT ${jobColumnsBounded}, ${whole("output")}, ${whole("error")}, ${whole("progress")}
    FROM job j ${joined} WHERE j.endpoint_no = :endpointNo AND j.id = :jobId AND j.expires_at > :now)
  SELECT no, endpoint_no, id, place, status, low_priority, starts, excused, retries, worker_no, worker_id, created_at, queued_at,
    taken_at, finished_at, deadline_at, ttl_end_at, expires_at, execution_timeout_ms, retention_ms, has_webhook, stop_wanted,
    output, error, progress, unread_bytes, part.name, part.n, ${readPieces.piece("part.whole", "part.n")} AS piece
  FROM found LEFT JOIN LATERAL (
    SELECT texts.name, texts.whole, n FROM (VALUES ('output', whole_output), ('error', whole_error), ('progress', whole_progress))
      AS texts (name, whole), ${readPieces.numbers("texts.whole")} AS n) part ON unread_bytes > 0`,
);

type TextRow = JobRow & PieceRow & { readonly name: keyof JobTexts | null };

const inputSql = `
  WITH found AS MATERIALIZED (SELECT ${readPieces.bytes("body")} AS whole FROM job_input WHERE job_no = $1)
  SELECT n, ${readPieces.piece("whole", "n")} AS piece FROM found, ${readPieces.numbers("whole")} AS n`;

const wholeOf = async (rows: readonly PieceRow[]) => (rows.length === 0 ? undefined : bytesOfPieces(rows));

/** Reads large texts on connections of their own, so that small reads never wait for them. */
export function postgresTextReader(reads: Connections): Pick<JobReader, "findTexts" | "input"> {
  return {
    async findTexts({ endpointNo, jobId, now, bytesMax }) {
      const rows = await reads.read<TextRow>(...textsSql.with({ endpointNo, jobId, now, bytesMax }));
      if (!rows[0]) return undefined;
      const job = toJob(rows[0]);
      if (rows[0].name === null) return { job, texts: undefined };
      const textOf = (name: keyof JobTexts) => wholeOf(rows.filter((row) => row.name === name));
      const [output, error, progress] = [await textOf("output"), await textOf("error"), await textOf("progress")];
      return { job, texts: { output, error, progress } };
    },
    input: async (jobNo) => wholeOf(await reads.read<PieceRow>(inputSql, [jobNo])),
  };
}
