import { goneAt, type JobStatus } from "../../packages/server/src/domain/jobs/job.js";
import type { NewJob } from "../../packages/server/src/store/index.js";

/** What the commits so far say of a job. */
export interface Known {
  readonly id: string;
  readonly endpointNo: number;
  readonly submitted: NewJob;
  /** Its place in the order: submissions and retries count up. */
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
  /** How often it ended, and how often it was tried again by a client. */
  ends: number;
  again: number;
  /** Its ttl passed while it ran: hidden, and to be stopped. */
  vanished: boolean;
  gone: boolean;
  /** Chunks of the present run: written, and handed out. */
  chunks: number;
  handed: number;
}

/** What the commits so far say of a worker. */
export interface KnownWorker {
  readonly no: number;
  readonly id: string;
  readonly endpointNo: number;
  wanted: string;
  endedAt: number | undefined;
  hasPinged: boolean;
}

/** What only the actors know, and commits are judged by. */
export interface Witness {
  /** Whether this worker, by what it did since then, may lose a job. */
  faultOf(workerId: string, since: number): boolean;
  /** Whether the client of a poll of this worker went away. */
  leftPoll(workerId: string): boolean;
  /** Whether a paused worker is just being told to go on. */
  isResuming(workerId: string): boolean;
  /** Whether this worker said this last word of this job. */
  said(workerId: string, jobId: string, output: string | undefined): boolean;
  /** Whether somebody asked for it. */
  askedTo(what: "cancel" | "retry" | "purge" | "delete", name: string | number): boolean;
}

export const expiryOf = (job: Known): number =>
  job.finishedAt === undefined
    ? job.ttlEndAt
    : goneAt({ ...job, retentionMs: job.submitted.retentionMs }, job.finishedAt);
