import type { Change, Job, JobReport, JobStatus, JobTexts, JsonText, Verdict } from "../domain/jobs/job.js";

/** A job to store. `policy` is JSON, too; `s3Config` is sealed already. */
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

/** What an idempotency key stands for, also after its job is gone. */
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

/** One worker's wish in a turn of its line. */
export interface Ask {
  readonly workerNo: number;
  readonly count: number;
}

/** A job as its worker is handed it. */
export interface TakenJob {
  readonly no: number;
  readonly id: string;
  readonly workerNo: number;
  readonly starts: number;
  readonly takenAt: number;
  readonly queuedAt: number;
  readonly deadlineAt: number;
  /** Its JSON; undefined where it is larger than `takeReadBytesMax`, and to be read apart. */
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

/** A job that a worker holds, or was told to stop and has not confirmed. */
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

/** What a settled job was, for whoever waits for it or counts it. */
export interface Settled {
  readonly id: string;
  readonly status: JobStatus;
  readonly delivery: boolean;
  readonly delayMs: number;
  readonly executionMs: number;
}

/** The hot half of the queue: every verb is one commit, and resolves only when it is on disk. */
export interface JobStore {
  /** Whether a take finds every job whose submission was called before it, committed or not: both are in one commit then. */
  readonly isInOrder: boolean;
  submit(job: NewJob): Promise<Submitted>;
  /**
   * Hands waiting jobs to workers, in the order of `asks`; none to a worker that is closed. It ends with the job whose input
   * reaches `takeBytesMax`. `dry`: nothing was left.
   */
  take(endpointNo: number, asks: readonly Ask[], now: number): Promise<Taken>;
  /** Records a worker's last word; undefined where it no longer holds the job (the word also confirms a stop). */
  settle(
    endpointNo: number,
    jobId: string,
    workerNo: number,
    verdict: Verdict,
    now: number,
  ): Promise<Settled | undefined>;
  progress(endpointNo: number, jobId: string, workerNo: number, progress: JsonText): Promise<boolean>;
  /** Applies a change where the job still is as it was read (status, starts, worker). */
  change(
    job: Pick<Job, "endpointNo" | "no" | "status" | "starts" | "workerNo">,
    change: Change,
    now: number,
  ): Promise<Settled | undefined>;
  /** Says when a running job began, for its times; its `executionTimeout` counts from `beginsBy` on. */
  begin(
    job: Pick<HeldJob, "endpointNo" | "no" | "starts" | "workerNo">,
    beganAt: number,
    beginsBy: number,
  ): Promise<void>;
  /** Sets the ttl; the job may be gone at once. */
  setTtl(job: Pick<Job, "endpointNo" | "no">, ttlEndAt: number, now: number): Promise<boolean>;
  /** Forgets that these jobs were to be stopped: their worker has done so, or is gone. */
  confirmStopped(workerNo: number, jobNos: readonly number[]): Promise<void>;
  /** Cancels waiting jobs up to a place, a batch at a time. */
  cancelWaiting(endpointNo: number, upToPlace: number, error: string, now: number, limit: number): Promise<Settled[]>;
  /** Deletes what has expired, a batch at a time; running jobs are marked to be stopped first. */
  sweep(now: number, limit: number): Promise<{ deleted: number; stopped: HeldJob[]; more: boolean }>;
}

/** What can be asked of the queue without changing it. Nothing that has expired is ever shown. */
export interface JobReader {
  /** The job; its texts only where they are at most `textReadBytesMax` together (see `unreadBytes`). */
  find(endpointNo: number, jobId: string, now: number): Promise<JobReport | undefined>;
  /** The job with its large texts, all as of one moment; without them where they are larger than `bytesMax` together. */
  findTexts(
    endpointNo: number,
    jobId: string,
    now: number,
    bytesMax: number,
    /** Where nobody waits for them any more, the reading may end early, with undefined. */
    gone?: { readonly aborted: boolean },
  ): Promise<{ job: JobReport; texts: JobTexts | undefined } | undefined>;
  /** What came with the job's input, as stored, and the input's size. */
  submission(
    jobNo: number,
  ): Promise<{ inputBytes: number; webhook: string | undefined; s3Config: string | undefined } | undefined>;
  /** The job's input as UTF-8 JSON, in pieces; undefined where the job is gone. */
  input(jobNo: number): Promise<readonly Uint8Array[] | undefined>;
  /**
   * The newest first, up to `limit` and up to a number of bytes of their texts; at least one, which comes without its texts
   * where they alone are more. `more`: others follow.
   */
  list(
    endpointNo: number,
    query: {
      status?: JobStatus;
      limit: number;
      bytesMax?: number;
      beforeNo?: number;
      /** Where nobody waits for them any more, the search may end early. */
      gone?: { readonly aborted: boolean };
    },
    now: number,
  ): Promise<{ jobs: JobReport[]; more: boolean }>;
  /** By worker, what it holds or has to stop. */
  heldBy(workerNo: number): Promise<HeldJob[]>;
  /** Running jobs past their deadline. */
  overdue(now: number, limit: number): Promise<HeldJob[]>;
  /** Jobs to stop that no worker has confirmed. */
  unstopped(): Promise<HeldJob[]>;
  /** Running jobs, and jobs to stop, whose worker has ended: what a crash may leave. */
  orphaned(): Promise<HeldJob[]>;
  nextDeadline(): Promise<number | undefined>;
  nextExpiry(): Promise<number | undefined>;
  /** Jobs before this place, counted up to `max`. */
  position(endpointNo: number, place: number, max: number): Promise<number>;
  lastPlace(): Promise<number>;
}
