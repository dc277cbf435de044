import type { Log } from "./log.js";

/** A job as its handler sees it. */
export interface Job {
  readonly id: string;
  /** Aborted when the job was cancelled or timed out, and when the worker is forced to stop. */
  readonly signal: AbortSignal;
  /** Lines of this job's log. */
  readonly log: Log;
  /** The address that the client wants to be told at, where it gave one. */
  readonly webhook?: string;
  /** The client's own object storage, where it gave one. */
  readonly s3Config?: Readonly<Record<string, string>>;
  /** The job's policy, as the client gave it: times are milliseconds. */
  readonly policy?: Readonly<Record<string, unknown>>;
  /**
   * Tells the client how far the job is: any JSON value, shown as its `output` until the job ends.
   * A newer value replaces one that waits to be sent. Never rejects; await it to let it go out before blocking work.
   */
  progress(value: unknown): Promise<void>;
  /** Asks for a fresh worker after this job; the present one takes no more jobs. */
  refreshWorker(): void;
}

/**
 * The user's function. What it returns is the job's output; what it throws is the job's error.
 * A generator (or any async iterable that it returns) streams: each yielded value is one chunk.
 */
// biome-ignore lint/suspicious/noExplicitAny: an untyped handler may read its input as it likes; typed ones name it
export type Handler<Input = any, Output = unknown> = (
  input: Input,
  job: Job,
) => Output | Promise<Output> | Generator<Output, unknown> | AsyncGenerator<Output, unknown>;

/** How a worker serves its handler; everything is optional. */
export interface ServeOptions {
  /**
   * How many jobs run at once in this process (default 1), at most 300. A function is asked before each take,
   * with the present number, so that a worker can adapt.
   */
  readonly concurrency?: number | ((current: number) => number);
  /** Streaming handlers: also put the list of all chunks into the job's output (default false). */
  readonly aggregate?: boolean;
}

/** A job as it comes over the wire. */
export interface TakenJob {
  readonly id: string;
  readonly input: unknown;
  readonly webhook?: string;
  readonly s3Config?: Readonly<Record<string, string>>;
  readonly policy?: Readonly<Record<string, unknown>>;
}
