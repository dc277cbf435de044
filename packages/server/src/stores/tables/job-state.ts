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

/** The job failed, was cancelled or timed out: the index `job_troubled`. */
export const isTroubled = (job?: string): string => `${columnOf(job, "status")} >= ${code.FAILED}`;
/** Whether that index has the jobs of this status. */
export const isTroubledStatus = (status: JobStatus): boolean => code[status] >= code.FAILED;
