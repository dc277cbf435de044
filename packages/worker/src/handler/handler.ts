import type { Log } from "../log.js";

/** A job as its handler sees it. */
export interface Job {
  readonly id: string;
  /** Aborted when the job was cancelled or timed out, and when the worker is forced to stop. */
  readonly signal: AbortSignal;
  /** Lines of this job's log. */
  readonly log: Log;
  /** The URL for the client's webhook, if there is one. */
  readonly webhook?: string;
  /** The client's own object storage settings, if there are any. */
  readonly s3Config?: Readonly<Record<string, string>>;
  /** The job's policy, as the client sent it; times are in milliseconds. */
  readonly policy?: Readonly<Record<string, unknown>>;
  /** The W3C trace context for spans of your own, if the server traces jobs. */
  readonly traceparent?: string;
  /**
   * Reports progress to the client: any JSON value, shown as the job's `output` until the job ends. A newer value
   * replaces one that waits to be sent. Never rejects; await it before blocking work, so that it is sent.
   */
  progress(value: unknown): Promise<void>;
  /** Requests a fresh worker after this job; the present one takes no more jobs. */
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

/** How a worker serves its handler; every option is optional. */
export interface ServeOptions {
  /**
   * How many jobs run at once in this process (default 1), at most 300. A function is called before each take with the
   * present number, so that a worker can adapt.
   */
  readonly concurrency?: number | ((current: number) => number);
  /** Streaming handlers: also put the list of all chunks into the job's output (default false). */
  readonly aggregate?: boolean;
}

/** A job as the server sends it. */
export interface TakenJob {
  readonly id: string;
  readonly input: unknown;
  readonly webhook?: string;
  readonly s3Config?: Readonly<Record<string, string>>;
  readonly policy?: Readonly<Record<string, unknown>>;
  readonly traceparent?: string;
}
