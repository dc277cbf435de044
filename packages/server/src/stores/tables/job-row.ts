import type { JobReport, JobStatus } from "../../domain/job.js";
import type { HeldJob } from "../../store.js";

/** How a status is stored. */
export const code = {
  IN_QUEUE: 0,
  IN_PROGRESS: 1,
  COMPLETED: 2,
  FAILED: 3,
  CANCELLED: 4,
  TIMED_OUT: 5,
} as const satisfies Record<JobStatus, number>;
const names = Object.keys(code) as JobStatus[];
export const statusOf = (stored: number): JobStatus => names[stored] as JobStatus;

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
}

/** The columns of a {@link JobRow}, with the job as `j`, its worker as `w` and its output as `o`. */
export const jobColumns = `j.no, j.endpoint_no, j.id, j.place, j.status, j.low_priority, j.starts, j.excused, j.retries, j.worker_no,
  w.id AS worker_id, j.created_at, j.queued_at, j.taken_at, j.finished_at, j.deadline_at, j.ttl_end_at, j.expires_at,
  j.execution_timeout_ms, j.retention_ms, j.has_webhook, j.stop_wanted, o.output, o.error, o.progress`;

/** The one crossing from a stored row to a job. */
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
    // stored as JSON text: SQLite would end a plain one at NUL
    error: row.error === null ? undefined : JSON.parse(row.error),
    progress: optional(row.progress),
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
