import type { Change, Job, JobReport, JobStatus, JobTexts, JsonText, Verdict } from "../domain/jobs/job.js";

/** A job to store. `policy` is JSON too; `s3Config` is already encrypted. */
export interface NewJob {
  readonly endpointNo: number;
  readonly id: string;
  readonly body: JsonText;
  readonly webhook: string | undefined;
  readonly s3Config: string | undefined;
  readonly policy: string | undefined;
  readonly lowPriority: boolean;
  readonly executionTimeoutMs: number;
  readonly retentionMs: number;
  readonly ttlEndAt: number;
  readonly createdAt: number;
  readonly idempotency:
    | { readonly keyHash: string; readonly bodyHash: string; readonly route: string; readonly expiresAt: number }
    | undefined;
}

/** The job that an idempotency key stands for, even after that job is deleted. */
export interface IdempotencyRecord {
  readonly jobId: string;
  readonly bodyHash: string;
  readonly route: string;
  readonly lastStatus: JobStatus;
}

export type Submitted =
  | { readonly kind: "submitted" }
  | { readonly kind: "known"; readonly record: IdempotencyRecord }
  | { readonly kind: "closed" }; // the endpoint is deleted

/** One worker's request in a turn of its line. */
export interface Ask {
  readonly workerNo: number;
  readonly count: number;
}

/** A job as it is handed to its worker. */
export interface TakenJob {
  readonly no: number;
  readonly id: string;
  readonly workerNo: number;
  readonly starts: number;
  readonly takenAt: number;
  readonly queuedAt: number;
  readonly deadlineAt: number;
  /** The input as JSON; undefined if it exceeds `takeReadBytesMax` and must be read separately. */
  readonly input: string | undefined;
  readonly inputBytes: number;
  readonly webhook: string | undefined;
  readonly s3Config: string | undefined;
  readonly policy: string | undefined;
}

export interface Taken {
  readonly jobs: TakenJob[];
  readonly dry: boolean;
}

/** A job that a worker holds, or was told to stop without confirming it yet. */
export interface HeldJob {
  readonly no: number;
  readonly endpointNo: number;
  readonly id: string;
  readonly status: JobStatus;
  readonly starts: number;
  readonly excused: number;
  readonly workerNo: number;
  readonly takenAt: number;
  readonly finishedAt: number | undefined;
  readonly stopWanted: boolean;
}

/** A job as its worker names it: what the worker says of it counts only while it holds the job. */
export interface Holder {
  readonly endpointNo: number;
  readonly jobId: string;
  readonly workerNo: number;
}

/** A worker's final result. */
export interface Report extends Holder {
  readonly verdict: Verdict;
  readonly now: number;
}

/** The waiting jobs of an endpoint up to a place, at most `limit` of them. */
export interface Purge {
  readonly endpointNo: number;
  readonly upToPlace: number;
  /** Why they are cancelled. */
  readonly error: string;
  readonly now: number;
  readonly limit: number;
}

/** A settled job, for its waiters and for metrics. */
export interface Settled {
  readonly id: string;
  readonly status: JobStatus;
  readonly delivery: boolean;
  readonly delayMs: number;
  readonly executionMs: number;
}

/** The hot half of the queue: every verb is one commit, and resolves only once it is on disk. */
export interface JobStore {
  /**
   * Whether a take sees every job whose submission was called before it, committed or not, because both are in one
   * commit.
   */
  readonly isInOrder: boolean;
  submit(job: NewJob): Promise<Submitted>;
  /**
   * Hands waiting jobs to workers, in the order of `asks`; closed workers get none. The last job is the one whose input
   * reaches `takeBytesMax`. `dry` means that no job was left.
   */
  take(endpointNo: number, asks: readonly Ask[], now: number): Promise<Taken>;
  /**
   * Records a worker's final result; undefined if the worker no longer holds the job (the report then still confirms a
   * stop).
   */
  settle(report: Report): Promise<Settled | undefined>;
  progress(said: Holder & { readonly progress: JsonText }): Promise<boolean>;
  /** Applies a change if the job is still as it was read (status, starts, worker). */
  change(
    job: Pick<Job, "endpointNo" | "no" | "status" | "starts" | "workerNo">,
    change: Change,
    now: number,
  ): Promise<Settled | undefined>;
  /** Records when a running job began, for its times; its `executionTimeout` counts from `beginsBy` on. */
  begin(
    job: Pick<HeldJob, "endpointNo" | "no" | "starts" | "workerNo">,
    beganAt: number,
    beginsBy: number,
  ): Promise<void>;
  /** Sets the ttl; the job may expire at once. */
  setTtl(job: Pick<Job, "endpointNo" | "no">, ttlEndAt: number, now: number): Promise<boolean>;
  /** Clears the stop requests of these jobs: their worker has stopped them, or is gone. */
  confirmStopped(workerNo: number, jobNos: readonly number[]): Promise<void>;
  /** Cancels waiting jobs up to a place, one batch at a time. */
  cancelWaiting(purge: Purge): Promise<Settled[]>;
  /** Deletes expired jobs, one batch at a time; running jobs are first marked to be stopped. */
  sweep(now: number, limit: number): Promise<{ deleted: number; stopped: HeldJob[]; more: boolean }>;
}

/** Reads of the queue. They never show expired jobs. */
export interface JobReader {
  /** The job; its texts are included only if they are at most `textReadBytesMax` together (see `unreadBytes`). */
  find(endpointNo: number, jobId: string, now: number): Promise<JobReport | undefined>;
  /** The job with its large texts, all from one moment; without the texts if they exceed `bytesMax` together. */
  findTexts(
    endpointNo: number,
    jobId: string,
    now: number,
    bytesMax: number,
    /** If aborted, because no caller waits for the result, the read may end early with undefined. */
    gone?: { readonly aborted: boolean },
  ): Promise<{ job: JobReport; texts: JobTexts | undefined } | undefined>;
  /** The stored fields that came with the job's input, and the input's size. */
  submission(
    jobNo: number,
  ): Promise<{ inputBytes: number; webhook: string | undefined; s3Config: string | undefined } | undefined>;
  /** The job's input as UTF-8 JSON, in pieces; undefined if the job is gone. */
  input(jobNo: number): Promise<readonly Uint8Array[] | undefined>;
  /**
   * The newest jobs first, up to `limit` and up to a number of bytes of their texts. At least one is returned, without
   * its texts if they alone exceed the bytes. `more` means that others follow.
   */
  list(
    endpointNo: number,
    query: {
      status?: JobStatus;
      limit: number;
      bytesMax?: number;
      beforeNo?: number;
      /** If aborted, because no caller waits for the result, the search may end early. */
      gone?: { readonly aborted: boolean };
    },
    now: number,
  ): Promise<{ jobs: JobReport[]; more: boolean }>;
  /** The jobs that a worker holds or must stop. */
  heldBy(workerNo: number): Promise<HeldJob[]>;
  /** Running jobs past their deadline. */
  overdue(now: number, limit: number): Promise<HeldJob[]>;
  /** Jobs to stop whose stop no worker has confirmed. */
  unstopped(): Promise<HeldJob[]>;
  /** Running jobs, and jobs to stop, whose worker has ended: a crash may leave such jobs. */
  orphaned(): Promise<HeldJob[]>;
  nextDeadline(): Promise<number | undefined>;
  nextExpiry(): Promise<number | undefined>;
  /** The number of jobs before this place, counted up to `max`. */
  position(endpointNo: number, place: number, max: number): Promise<number>;
  lastPlace(): Promise<number>;
}
