import { goneAt, type JobStatus } from "../../packages/server/src/domain/jobs/job.js";
import type { NewJob } from "../../packages/server/src/store/index.js";

/** The state of a job according to the commits so far. */
export interface Known {
  readonly id: string;
  readonly endpointNo: number;
  readonly submitted: NewJob;
  /** Its position in the order: submissions and retries count up. */
  order: number;
  status: JobStatus;
  /** When its state last changed. */
  movedAt: number;
  holder: number | undefined;
  takenAt: number;
  finishedAt: number | undefined;
  ttlEndAt: number;
  starts: number;
  excused: number;
  retries: number;
  /** How often it ended, and how often a client retried it. */
  ends: number;
  again: number;
  /** Its ttl passed while it ran: it is hidden, and must be stopped. */
  vanished: boolean;
  gone: boolean;
  /** Chunks of the present run: how many were written, and how many handed out. */
  chunks: number;
  handed: number;
}

/** The state of a worker according to the commits so far. */
export interface KnownWorker {
  readonly no: number;
  readonly id: string;
  readonly endpointNo: number;
  wanted: string;
  endedAt: number | undefined;
  hasPinged: boolean;
}

/** Facts that only the actors know, by which commits are judged. */
export interface Witness {
  /** Whether this worker, by its actions since then, may lose a job. */
  faultOf(workerId: string, since: number): boolean;
  /** Whether the client of one of this worker's polls disconnected. */
  leftPoll(workerId: string): boolean;
  /** Whether a paused worker is being resumed at this moment. */
  isResuming(workerId: string): boolean;
  /** Whether this worker reported this result of this job. */
  said(workerId: string, jobId: string, output: string | undefined): boolean;
  /** Whether a client requested it. */
  askedTo(what: "cancel" | "retry" | "purge" | "delete", name: string | number): boolean;
}

export const expiryOf = (job: Known): number =>
  job.finishedAt === undefined
    ? job.ttlEndAt
    : goneAt({ ...job, retentionMs: job.submitted.retentionMs }, job.finishedAt);
