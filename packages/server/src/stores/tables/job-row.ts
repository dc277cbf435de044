import type { JobReport } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import type { HeldJob, JobHappening, JobSubmission, JobTimes, TakenJob } from "../../store/index.js";
import { statusOf } from "./job-state.js";

const optional = <T>(value: T | null): T | undefined => value ?? undefined;

export interface JobRow {
  no: number;
  endpoint_no: number;
  id: string;
  place: number;
  status: number;
  low_priority: number;
  starts: number;
  excused: number;
  retries: number;
  worker_no: number | null;
  worker_id: string | null;
  created_at: number;
  queued_at: number;
  taken_at: number | null;
  finished_at: number | null;
  deadline_at: number | null;
  ttl_end_at: number;
  expires_at: number;
  execution_timeout_ms: number;
  retention_ms: number;
  has_webhook: number;
  stop_wanted: number;
  output: string | null;
  error: string | null;
  progress: string | null;
  unread_bytes: number;
}

/** A job's worker and its output so far, with the job as `j`. */
export const joined = "LEFT JOIN worker w ON w.no = j.worker_no LEFT JOIN job_output o ON o.job_no = j.no";

/** What happened to a job, newest first; `jobNo` is a parameter. */
export const happenedSql = (jobNo: string, limit: number) => `SELECT e.at, e.event, w.id AS worker_id, e.note
  FROM job_event e LEFT JOIN worker w ON w.no = e.worker_no WHERE e.job_no = ${jobNo} ORDER BY e.n DESC LIMIT ${limit}`;

export interface HappeningRow {
  at: number;
  event: string;
  worker_id: string | null;
  note: string | null;
}

export const toHappening = ({ at, event, worker_id, note }: HappeningRow): JobHappening => ({
  at,
  event,
  ...(worker_id === null ? {} : { workerId: worker_id }),
  ...(note === null ? {} : { note }),
});

/**
 * When an endpoint's newest jobs that a worker has taken came, were taken and ended; all arguments are parameters. Only
 * so many rows are looked at: any number of others may wait.
 */
export const recentSql = (endpointNo: string, now: string, rows: string, limit: string) => `
  SELECT status, queued_at, taken_at, finished_at FROM job WHERE endpoint_no = ${endpointNo}
    AND no > coalesce((SELECT no FROM job WHERE endpoint_no = ${endpointNo} ORDER BY no DESC LIMIT 1 OFFSET ${rows}), 0)
    AND taken_at IS NOT NULL AND expires_at > ${now} ORDER BY no DESC LIMIT ${limit}`;

export type TimesRow = Pick<JobRow, "status" | "queued_at" | "taken_at" | "finished_at">;

export const toTimes = ({ status, queued_at, taken_at, finished_at }: TimesRow): JobTimes => ({
  status: statusOf(status),
  queuedAt: queued_at,
  takenAt: taken_at as number,
  finishedAt: optional(finished_at),
});

/** How a database reads a text column, and its size in bytes: SQLite stores large texts apart from their rows. */
export interface TextColumns {
  whole(column: string): string;
  bytes(column: string): string;
}

/** Texts stored in their columns, whatever their size. */
export const textsInPlace: TextColumns = {
  whole: (column) => column,
  bytes: (column) => `octet_length(${column})`,
};

const texts = ["output", "error", "progress"] as const;

const plainColumns = `j.no, j.endpoint_no, j.id, j.place, j.status, j.low_priority, j.starts, j.excused, j.retries, j.worker_no,
  w.id AS worker_id, j.created_at, j.queued_at, j.taken_at, j.finished_at, j.deadline_at, j.ttl_end_at, j.expires_at,
  j.execution_timeout_ms, j.retention_ms, j.has_webhook, j.stop_wanted`;

/** The SQL that reads jobs with their texts, for a database that stores them in this way. */
export function jobTextSql({ whole, bytes }: TextColumns) {
  /** The size of a job's texts in bytes, with the output as `o`, without reading the texts. */
  const textBytes = `(${texts.map((text) => `coalesce(${bytes(`o.${text}`)}, 0)`).join(" + ")})`;

  /**
   * The columns of a {@link JobRow}, with the job as `j`, its worker as `w` and its output as `o`; texts only if `fits`
   * holds.
   */
  const columnsWhere = (fits: string): string => `${plainColumns},
  ${texts.map((text) => `CASE WHEN ${fits} THEN ${whole(`o.${text}`)} END AS ${text}`).join(", ")},
  CASE WHEN ${fits} THEN 0 ELSE ${textBytes} END AS unread_bytes`;

  return {
    textBytes,

    /** The columns of a {@link JobRow}, with its texts if they are small. */
    jobColumnsBounded: columnsWhere(`${textBytes} <= ${limits.textReadBytesMax}`),

    /**
     * A page of the jobs found by `where`: the newest `limit` jobs whose bytes fit into `bytesMax`, and at least one,
     * without its texts if they alone do not fit. `found` is their number, up to one more than `limit`. It is one
     * statement, so that no job changes between the reads of its size and its text.
     */
    pageOf: (where: string, limit: string, bytesMax: string): string => `
  SELECT ${columnsWhere(`page.bytes <= ${bytesMax}`)}, page.found FROM (
    SELECT no, endpoint_no, row_number() OVER newest AS n, sum(bytes) OVER newest AS bytes, count(*) OVER () AS found FROM (
      SELECT j.no, j.endpoint_no, ${textBytes} AS bytes FROM ${where} ORDER BY j.no DESC LIMIT ${limit} + 1) sized
    WINDOW newest AS (ORDER BY no DESC)) page
  JOIN job j ON j.endpoint_no = page.endpoint_no AND j.no = page.no ${joined}
  WHERE page.n = 1 OR (page.bytes <= ${bytesMax} AND page.n <= ${limit}) ORDER BY page.no DESC`,

    /** A job's input if it is small, and its size, with the input as `i`. */
    boundedBody: `CASE WHEN ${bytes("i.body")} <= ${limits.takeReadBytesMax} THEN i.body END AS body,
  ${bytes("i.body")} AS body_bytes`,
  };
}

/** The bytes of a page that is limited only by its length. */
export const anySize = Number.MAX_SAFE_INTEGER;
export interface PageRow extends JobRow {
  found: number;
}
export const toPage = (rows: readonly PageRow[]): { jobs: JobReport[]; more: boolean } => ({
  jobs: rows.map(toJob),
  more: (rows[0]?.found ?? 0) > rows.length,
});

/** The only conversion from a stored row to a job. */
export function toJob(row: JobRow): JobReport {
  return {
    no: row.no,
    endpointNo: row.endpoint_no,
    id: row.id,
    status: statusOf(row.status),
    place: row.place,
    lowPriority: row.low_priority === 1,
    starts: row.starts,
    excused: row.excused,
    retries: row.retries,
    workerNo: optional(row.worker_no),
    workerId: row.worker_id ?? "",
    createdAt: row.created_at,
    queuedAt: row.queued_at,
    takenAt: optional(row.taken_at),
    finishedAt: optional(row.finished_at),
    deadlineAt: optional(row.deadline_at),
    ttlEndAt: row.ttl_end_at,
    expiresAt: row.expires_at,
    executionTimeoutMs: row.execution_timeout_ms,
    retentionMs: row.retention_ms,
    hasWebhook: row.has_webhook === 1,
    stopWanted: row.stop_wanted === 1,
    output: optional(row.output),
    // stored as JSON text, because SQLite would end a plain text at NUL
    error: row.error === null ? undefined : JSON.parse(row.error),
    progress: optional(row.progress),
    unreadBytes: row.unread_bytes,
  };
}

export const heldColumns =
  "no, endpoint_no, id, status, starts, excused, worker_no, taken_at, finished_at, stop_wanted";
export interface HeldRow {
  no: number;
  endpoint_no: number;
  id: string;
  status: number;
  starts: number;
  excused: number;
  worker_no: number;
  taken_at: number;
  finished_at: number | null;
  stop_wanted: number;
}
export const toHeldJob = (row: HeldRow): HeldJob => ({
  no: row.no,
  endpointNo: row.endpoint_no,
  id: row.id,
  status: statusOf(row.status),
  starts: row.starts,
  excused: row.excused,
  workerNo: row.worker_no,
  takenAt: row.taken_at,
  finishedAt: optional(row.finished_at),
  stopWanted: row.stop_wanted === 1,
});

/** A taken job, as stored. */
export interface TakenRow {
  no: number;
  id: string;
  place: number;
  starts: number;
  worker_no: number;
  queued_at: number;
  taken_at: number;
  deadline_at: number;
  body: string | null;
  body_bytes: number;
  webhook: string | null;
  s3_config: string | null;
  policy: string | null;
  trace: string | null;
}

export interface SubmissionRow {
  bytes: number;
  webhook: string | null;
  s3_config: string | null;
  trace: string | null;
}

export const toSubmission = (row: SubmissionRow): JobSubmission => ({
  inputBytes: row.bytes,
  webhook: row.webhook ?? undefined,
  s3Config: row.s3_config ?? undefined,
  trace: row.trace ?? undefined,
});

export const toTakenJob = (row: TakenRow): TakenJob => ({
  no: row.no,
  id: row.id,
  workerNo: row.worker_no,
  starts: row.starts,
  takenAt: row.taken_at,
  queuedAt: row.queued_at,
  deadlineAt: row.deadline_at,
  input: optional(row.body),
  inputBytes: row.body_bytes,
  webhook: row.webhook ?? undefined,
  s3Config: row.s3_config ?? undefined,
  policy: row.policy ?? undefined,
  trace: row.trace ?? undefined,
});
