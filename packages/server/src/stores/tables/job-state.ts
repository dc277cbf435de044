import type { JobStatus } from "../../domain/jobs/job.js";

/** How a status is stored. Statements interpolate it; the schemas' steps are history and keep their numbers. */
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

const columnOf = (job: string | undefined, column: string): string => (job === undefined ? column : `${job}.${column}`);

// SQL conditions of partial indexes: a database uses such an index only for a statement that repeats its condition

/** A worker holds the job or must stop it: the index `job_held`. */
export const isAtWorker = (job?: string): string =>
  `(${columnOf(job, "status")} = ${code.IN_PROGRESS} OR ${columnOf(job, "stop_wanted")} = 1)`;

/** The indexes of the jobs that ended badly, so that a list of them skips the million that succeeded. */
export const statusIndexes = {
  FAILED: "job_failed",
  CANCELLED: "job_cancelled",
  TIMED_OUT: "job_timed_out",
} as const satisfies Partial<Record<JobStatus, string>>;
export type IndexedStatus = keyof typeof statusIndexes;
export const isIndexed = (status: JobStatus): status is IndexedStatus => Object.hasOwn(statusIndexes, status);

/** The job's status is this one: the indexes `statusIndexes`. */
export const hasStatus = (status: IndexedStatus, job?: string): string =>
  `${columnOf(job, "status")} = ${code[status]}`;
