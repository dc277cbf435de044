import type { Change, Job, JobReport, JobStatus, JobTexts, JsonText, Verdict } from "../domain/jobs/job.js";

/** A job to store. `policy` is JSON too; `s3Config` is already encrypted. */
export interface NewJob {
  readonly endpointNo: number;
  readonly id: string;
  readonly body: JsonText;
  readonly webhook: string | undefined;
  readonly s3Config: string | undefined;
  readonly policy: string | undefined;
  /** The client's `traceparent`. */
  readonly trace?: string | undefined;
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
  readonly trace: string | undefined;
}

/** Workers' requests for waiting jobs of an endpoint, in the order in which they get them. */
export interface Take {
  readonly endpointNo: number;
  readonly asks: readonly Ask[];
  readonly now: number;
}

export interface Taken {
  readonly jobs: TakenJob[];
  readonly dry: boolean;
}

/** What came with a job, except its input. */
export interface JobSubmission {
  readonly inputBytes: number;
  readonly webhook: string | undefined;
  readonly s3Config: string | undefined;
  readonly trace: string | undefined;
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

/** A change of a job as it was read. */
export interface Changing {
  readonly job: Pick<Job, "endpointNo" | "no" | "status" | "starts" | "workerNo">;
  readonly change: Change;
  readonly now: number;
}

/** When a running job began; its `executionTimeout` counts from `beginsBy` on. */
export interface Begun {
  readonly job: Pick<HeldJob, "endpointNo" | "no" | "starts" | "workerNo">;
  readonly beganAt: number;
  readonly beginsBy: number;
}

export interface NewTtl {
  readonly job: Pick<Job, "endpointNo" | "no">;
  readonly ttlEndAt: number;
  readonly now: number;
}

/** Jobs that their worker has stopped, or that it left when it ended. */
export interface Stopped {
  readonly workerNo: number;
  readonly jobNos: readonly number[];
}

/** At most `limit` of the jobs that are due. */
export interface DueBatch {
  readonly now: number;
  readonly limit: number;
}

export interface Swept {
  readonly deleted: number;
  readonly stopped: HeldJob[];
  readonly more: boolean;
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
  take(take: Take): Promise<Taken>;
  /**
   * Records a worker's final result; undefined if the worker no longer holds the job (the report then still confirms a
   * stop).
   */
  settle(report: Report): Promise<Settled | undefined>;
  progress(said: Holder & { readonly progress: JsonText }): Promise<boolean>;
  /** Applies a change if the job is still as it was read (status, starts, worker). */
  change(changing: Changing): Promise<Settled | undefined>;
  /** Records when a running job began, for its times. */
  begin(begun: Begun): Promise<void>;
  /** Sets the ttl; the job may expire at once. */
  setTtl(ttl: NewTtl): Promise<boolean>;
  /** Clears the stop requests of these jobs. */
  confirmStopped(stopped: Stopped): Promise<void>;
  /** Cancels waiting jobs up to a place, one batch at a time. */
  cancelWaiting(purge: Purge): Promise<Settled[]>;
  /** Deletes expired jobs, one batch at a time; running jobs are first marked to be stopped. */
  sweep(batch: DueBatch): Promise<Swept>;
}

/** A job as a client names it. */
export interface JobQuery {
  readonly endpointNo: number;
  readonly jobId: string;
  readonly now: number;
}

/** A job with its texts, if they have at most `bytesMax` bytes together. */
export interface TextsQuery extends JobQuery {
  readonly bytesMax: number;
  /** If aborted, because no caller waits for the result, the read may end early with undefined. */
  readonly gone?: { readonly aborted: boolean } | undefined;
}

/** A page of an endpoint's jobs. */
export interface PageQuery {
  readonly endpointNo: number;
  /** Whose list it is: owners take turns. */
  readonly ownerNo?: number;
  readonly status?: JobStatus;
  readonly limit: number;
  readonly bytesMax?: number;
  readonly beforeNo?: number;
  /** If aborted, because no caller waits for the result, the search may end early. */
  readonly gone?: { readonly aborted: boolean };
  readonly now: number;
}

/** When a job came, was taken and ended. */
export interface JobTimes {
  readonly status: JobStatus;
  readonly queuedAt: number;
  readonly takenAt: number;
  readonly finishedAt: number | undefined;
}

/** The newest jobs of an endpoint that a worker has taken, at most `limit` of them. */
export interface RecentQuery {
  readonly endpointNo: number;
  readonly limit: number;
  readonly now: number;
}

/** A place in an endpoint's order; jobs before it are counted up to `max`. */
export interface PositionQuery {
  readonly endpointNo: number;
  readonly place: number;
  readonly max: number;
}

/** Something that happened to a job besides takes and its end; `workerId` held it then. */
export interface JobHappening {
  readonly at: number;
  readonly event: string;
  readonly workerId?: string;
  readonly note?: string;
}

/** Reads of the queue. They never show expired jobs. */
export interface JobReader {
  /** The job; its texts are included only if they are at most `textReadBytesMax` together (see `unreadBytes`). */
  find(query: JobQuery): Promise<JobReport | undefined>;
  /** The job with its large texts, all from one moment; without the texts if they exceed `bytesMax` together. */
  findTexts(query: TextsQuery): Promise<{ job: JobReport; texts: JobTexts | undefined } | undefined>;
  /** The stored fields that came with the job's input, and the input's size. */
  submission(jobNo: number): Promise<JobSubmission | undefined>;
  /** What happened to the job, oldest first: the last `happeningsShown`. */
  happened(jobNo: number): Promise<JobHappening[]>;
  /** The job's input as UTF-8 JSON, in pieces; undefined if the job is gone. */
  input(jobNo: number): Promise<readonly Uint8Array[] | undefined>;
  /**
   * The newest jobs first, up to `limit` and up to a number of bytes of their texts. At least one is returned, without
   * its texts if they alone exceed the bytes. `more` means that others follow.
   */
  list(query: PageQuery): Promise<{ jobs: JobReport[]; more: boolean }>;
  /** The times of an endpoint's newest jobs that a worker has taken, newest first, among `recentSearched` jobs. */
  recent(query: RecentQuery): Promise<JobTimes[]>;
  /** The jobs that a worker holds or must stop. */
  heldBy(workerNo: number): Promise<HeldJob[]>;
  /** Running jobs past their deadline. */
  overdue(batch: DueBatch): Promise<HeldJob[]>;
  /** Jobs to stop whose stop no worker has confirmed. */
  unstopped(): Promise<HeldJob[]>;
  /** Running jobs, and jobs to stop, whose worker has ended: a crash may leave such jobs. */
  orphaned(): Promise<HeldJob[]>;
  nextDeadline(): Promise<number | undefined>;
  nextExpiry(): Promise<number | undefined>;
  /** The number of jobs before this place. */
  position(query: PositionQuery): Promise<number>;
  lastPlace(): Promise<number>;
}
