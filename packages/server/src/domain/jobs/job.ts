import { limits } from "../../limits/index.js";

export type JobStatus = "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "FAILED" | "CANCELLED" | "TIMED_OUT";

/** Every way a job changes state; nothing else may write `status`. */
export const transitions = {
  take: { from: ["IN_QUEUE"], to: "IN_PROGRESS" }, // a worker asked for work
  progress: { from: ["IN_PROGRESS"], to: "IN_PROGRESS" }, // its worker reports how far it is
  complete: { from: ["IN_PROGRESS"], to: "COMPLETED" }, // its handler returned
  fail: { from: ["IN_PROGRESS"], to: "FAILED" }, // its handler raised an error, or it was lost too often
  giveBack: { from: ["IN_PROGRESS"], to: "IN_QUEUE" }, // its worker or its result was lost, or we stopped the worker
  timeOut: { from: ["IN_PROGRESS"], to: "TIMED_OUT" }, // executionTimeout passed
  cancel: { from: ["IN_QUEUE", "IN_PROGRESS"], to: "CANCELLED" }, // a client, a purge, the endpoint's deletion
  retry: { from: ["FAILED", "TIMED_OUT"], to: "IN_QUEUE" }, // a client
} as const satisfies Record<string, { from: readonly JobStatus[]; to: JobStatus }>;
export type JobEvent = keyof typeof transitions;

const finals: ReadonlySet<JobStatus> = new Set(["COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"]);

/** Whether a job in this state has ended (only `/retry` brings it back). */
export const isFinal = (status: JobStatus): boolean => finals.has(status);

/** Whether `event` may happen to a job in this state. */
export const mayHappen = (event: JobEvent, status: JobStatus): boolean =>
  (transitions[event].from as readonly JobStatus[]).includes(status);

/** A job as operations see it. Times are milliseconds. */
export interface Job {
  readonly no: number;
  readonly endpointNo: number;
  readonly id: string;
  readonly status: JobStatus;
  readonly place: number;
  readonly lowPriority: boolean;
  readonly starts: number;
  /** Starts that do not count against the job, because we took it back ourselves. */
  readonly excused: number;
  readonly retries: number;
  readonly workerNo: number | undefined;
  readonly workerId: string;
  readonly createdAt: number;
  /** Submission, or the last `/retry`. */
  readonly queuedAt: number;
  readonly takenAt: number | undefined;
  readonly finishedAt: number | undefined;
  readonly deadlineAt: number | undefined;
  readonly ttlEndAt: number;
  readonly expiresAt: number;
  readonly executionTimeoutMs: number;
  readonly retentionMs: number;
  readonly hasWebhook: boolean;
  readonly stopWanted: boolean;
}

/** A job with its worker's output, error and progress, as JSON text. */
export interface JobReport extends Job {
  readonly output: string | undefined;
  readonly error: string | undefined;
  readonly progress: string | undefined;
  /**
   * Bytes of those three together if they are too large to be read with the job, and so undefined here; otherwise 0.
   */
  readonly unreadBytes: number;
}

/** A job's large texts as UTF-8 JSON, each in pieces. */
export interface JobTexts {
  readonly output: readonly Uint8Array[] | undefined;
  readonly error: readonly Uint8Array[] | undefined;
  readonly progress: readonly Uint8Array[] | undefined;
}

/** A decided change of a job. The store applies it only if the job is still in the change's `from` state. */
export type Change =
  | { readonly by: "giveBack"; readonly excused: boolean }
  | { readonly by: "fail"; readonly error: string }
  | { readonly by: "timeOut"; readonly error: string }
  | { readonly by: "cancel"; readonly error?: string }
  | { readonly by: "retry" };

/** Whether a job would fail if its worker or its result were lost. */
export const isLastStart = (job: Pick<Job, "starts" | "excused">): boolean =>
  job.starts - job.excused >= limits.startsMax;

/**
 * Decides what happens to a job whose worker or result was lost. `why` begins the error's sentence; `last` says how its
 * last worker ended, if known.
 */
export function settleLoss(job: Pick<Job, "starts" | "excused">, why: string, last?: string): Change {
  if (!isLastStart(job)) return { by: "giveBack", excused: false };
  const ending = last === undefined ? "" : ` The last of them: ${last}`;
  return { by: "fail", error: `${why} (${limits.startsMax} starts in all).${ending}` };
}

/** How long a job has waited for its current start, and how long that start has run, in ms. */
export function times(job: Pick<Job, "queuedAt" | "takenAt" | "finishedAt">, now: number) {
  const end = job.finishedAt ?? now;
  return {
    delayTime: Math.max(0, (job.takenAt ?? end) - job.queuedAt),
    executionTime: job.takenAt === undefined ? 0 : Math.max(0, end - job.takenAt),
  };
}

/** When a job that ended at `finishedAt` is deleted: at the end of its ttl or its retention, whichever is earlier. */
export const goneAt = (job: Pick<Job, "ttlEndAt" | "retentionMs">, finishedAt: number): number =>
  Math.min(job.ttlEndAt, finishedAt + job.retentionMs);

/**
 * JSON as received: a string, or UTF-8 bytes if it is large. Whoever receives the bytes may transfer them to another
 * thread.
 */
export type JsonText = string | Uint8Array;

/** A worker's final result for a job, judged. */
export type Verdict =
  | { readonly status: "COMPLETED"; readonly output: JsonText | undefined }
  | { readonly status: "FAILED"; readonly error: string; readonly output: JsonText | undefined };

/** What a client may set for its job besides the input (contract: Policy object). */
export interface Policy {
  readonly executionTimeoutMs?: number;
  readonly ttlMs?: number;
  readonly lowPriority: boolean;
}

/**
 * How long a finished job is kept, in ms. For `/runsync` it is the request's `wait`, but at least 1 and at most 5
 * minutes.
 */
export function retentionMs(route: "run" | "runsync", waitMs?: number): number {
  if (route === "run") return limits.runRetentionMs;
  return Math.min(Math.max(waitMs ?? 0, limits.runsyncRetentionMs), limits.runsyncRetentionMsMax);
}
