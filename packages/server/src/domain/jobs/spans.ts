import type { JobStatus } from "./job.js";
import { type QueuedJob, runSpan, spanIdOf, traceOf } from "./trace.js";

/** What a trace shows of a job: an interval, and the interval that it is part of. Times are Unix milliseconds. */
export interface JobSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly kind: "server" | "internal" | "consumer" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** Why it counts as failed. */
  readonly error?: string;
  readonly events?: readonly { readonly name: string; readonly atMs: number }[];
}

/** An ended job, with the start of its last worker. */
export interface TracedJob {
  readonly id: string;
  readonly endpoint: { readonly id: string; readonly name: string };
  readonly status: JobStatus;
  /** The client's `traceparent`. */
  readonly trace: string | undefined;
  readonly queuedAt: number;
  readonly takenAt: number | undefined;
  readonly finishedAt: number;
  readonly starts: number;
  readonly workerId: string;
  /** Losses and retries. */
  readonly happened: readonly { readonly at: number; readonly event: string; readonly note?: string | undefined }[];
  readonly worker: { readonly createdAt: number; readonly phases: readonly { name: string; at: number }[] } | undefined;
}

/**
 * The spans of an ended job: the job, its wait, the start of its worker if that fell into the wait, and its last run. None
 * if its client does not want it traced.
 */
export function spansOf(job: TracedJob): JobSpan[] {
  const { traceId, parentSpanId, isSampled } = traceOf(job.id, job.trace);
  if (!isSampled) return [];
  const { id, endpoint, status, queuedAt, takenAt, finishedAt, worker } = job;
  const attributes = { "millrace.endpoint.id": endpoint.id, "millrace.job.id": id };
  const span = (name: string, key: string, parent: string | undefined, startMs: number, endMs: number) => ({
    ...{ name, traceId, spanId: spanIdOf(job, key), parentSpanId: parent, kind: "internal" as JobSpan["kind"] },
    ...{ startMs, endMs: Math.max(startMs, endMs), attributes },
  });
  const failed = status === "COMPLETED" ? {} : { error: status };
  const root = spanIdOf(job, "job");
  const spans: JobSpan[] = [
    {
      ...span(`job ${endpoint.name}`, "job", parentSpanId, queuedAt, finishedAt),
      ...{ kind: "server", attributes: { ...attributes, "millrace.job.status": status }, ...failed },
      events: job.happened.map(({ at, event, note }) => ({ name: note ? `${event}: ${note}` : event, atMs: at })),
    },
    span("wait", "wait", root, queuedAt, takenAt ?? finishedAt),
  ];
  const readyAt = worker?.phases.at(-1)?.at;
  if (worker && readyAt !== undefined && readyAt > queuedAt && worker.createdAt <= (takenAt ?? finishedAt))
    spans.push({
      ...span("worker start", "worker start", spanIdOf(job, "wait"), Math.max(worker.createdAt, queuedAt), readyAt),
      events: worker.phases.map(({ name, at }) => ({ name, atMs: at })),
    });
  if (takenAt !== undefined)
    spans.push({
      ...span("run", runSpan(job.starts), root, takenAt, finishedAt),
      ...{ kind: "consumer", attributes: { ...attributes, "millrace.worker.id": job.workerId }, ...failed },
    });
  return spans;
}

/** An attempt to deliver a job's webhook, numbered from 1. */
export interface TracedAttempt {
  readonly job: QueuedJob;
  readonly trace: string | undefined;
  readonly attempt: number;
  readonly at: number;
  readonly durationMs: number;
  readonly host: string;
  readonly status: number | undefined;
  readonly error: string | undefined;
}

/** The span of an attempt, part of the job. */
export function attemptSpan({ job, trace, attempt, at, durationMs, host, status, error }: TracedAttempt): JobSpan[] {
  const { traceId, isSampled } = traceOf(job.id, trace);
  if (!isSampled) return [];
  const replied = status === undefined ? {} : { "http.response.status_code": status };
  return [
    {
      ...{
        name: "webhook",
        traceId,
        spanId: spanIdOf(job, webhookSpan(attempt)),
        parentSpanId: spanIdOf(job, "job"),
      },
      ...{ kind: "client", startMs: at, endMs: at + durationMs },
      attributes: {
        "millrace.job.id": job.id,
        "server.address": host,
        "millrace.webhook.attempt": attempt,
        ...replied,
      },
      ...(status === 200 ? {} : { error: error ?? `status ${status}` }),
    },
  ];
}

/** The name of the span of a webhook's nth attempt: the receiver's own spans belong to it. */
export const webhookSpan = (attempt: number): string => `webhook ${attempt}`;
