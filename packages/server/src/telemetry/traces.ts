import type { Link } from "@opentelemetry/api";
import type { BatchSpanProcessor, ReadableSpan } from "@opentelemetry/sdk-trace";
import { attemptSpan, type JobSpan, spansOf, type TracedJob } from "../domain/jobs/spans.js";
import type { Emit } from "../events.js";
import { limits } from "../limits/index.js";

/** Where spans go, and where they come from. */
export interface TraceParts {
  /** The collector's address, such as http://127.0.0.1:4318: OTLP over HTTP, as JSON. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly version: string;
  /** An ended job; undefined if it is gone. */
  readonly find: (endpointId: string, jobId: string) => Promise<TracedJob | undefined>;
  readonly emit: Emit;
}

/** Sends jobs' spans to a collector. */
export interface Traces {
  readonly emit: Emit;
  /** Sends what waits, for a few seconds at most. */
  close(): Promise<void>;
}

/**
 * Traces of jobs, made after the fact from what is kept of each: a trace costs nothing while its job waits and runs, and
 * needs no memory of it. If the collector is slow or away, spans are dropped, never jobs.
 */
export async function openTraces({ url, headers, version, find, emit: warn }: TraceParts): Promise<Traces> {
  // loaded only if there is a collector: they are 15 MB
  const { SpanKind, SpanStatusCode, TraceFlags } = await import("@opentelemetry/api");
  const { BatchSpanProcessor } = await import("@opentelemetry/sdk-trace");
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  const { resourceFromAttributes } = await import("@opentelemetry/resources");
  const exporter = new OTLPTraceExporter({
    url: `${url.replace(/\/+$/, "")}/v1/traces`,
    headers: { ...headers },
    timeoutMillis: limits.traceExportMs,
  });
  const processor: BatchSpanProcessor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: limits.tracedSpansMax,
    scheduledDelayMillis: limits.traceBatchMs,
  });
  const resource = resourceFromAttributes({ "service.name": "millrace", "service.version": version });
  const kinds = {
    server: SpanKind.SERVER,
    internal: SpanKind.INTERNAL,
    consumer: SpanKind.CONSUMER,
    client: SpanKind.CLIENT,
  };
  const context = (traceId: string, spanId: string) => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED });
  const toSpan = (span: JobSpan): ReadableSpan => ({
    ...{ name: span.name, kind: kinds[span.kind], attributes: span.attributes, resource, ended: true },
    spanContext: () => context(span.traceId, span.spanId),
    ...(span.parentSpanId && { parentSpanContext: { ...context(span.traceId, span.parentSpanId), isRemote: true } }),
    startTime: hrTime(span.startMs),
    endTime: hrTime(span.endMs),
    duration: hrTime(span.endMs - span.startMs),
    status: span.error ? { code: SpanStatusCode.ERROR, message: span.error } : { code: SpanStatusCode.UNSET },
    links: [] as Link[],
    events: (span.events ?? []).map(({ name, atMs }) => ({ name, time: hrTime(atMs) })),
    instrumentationScope: { name: "millrace", version },
    ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
  });
  const send = (spans: readonly JobSpan[]) => {
    for (const span of spans) processor.onEnd(toSpan(span));
  };

  const ended = new EndedJobs({ find, warn, onRead: (job) => send(spansOf(job)) });
  return {
    emit(event) {
      if (event.type === "job.ended") ended.add(event);
      else if (event.type === "webhook.attempted" && event.traced) send(attemptSpan({ ...event, ...event.traced }));
    },
    async close() {
      await ended.read();
      await processor.shutdown().catch(() => {});
    },
  };
}

interface Ended {
  readonly endpointId: string;
  readonly jobId: string;
}

interface EndedJobsParts extends Pick<TraceParts, "find"> {
  readonly warn: Emit;
  readonly onRead: (job: TracedJob) => void;
}

/** Jobs that have ended, read one after the other. */
class EndedJobs {
  readonly #parts: EndedJobsParts;
  readonly #waiting: Ended[] = [];
  #reading: Promise<void> | undefined;
  #isWarned = false;

  constructor(parts: EndedJobsParts) {
    this.#parts = parts;
  }

  add(job: Ended): void {
    if (this.#waiting.length < limits.tracedJobsWaiting) {
      this.#waiting.push(job);
      void this.read();
      return;
    }
    if (this.#isWarned) return;
    this.#isWarned = true;
    const message = "Too many jobs end to trace each: some have no trace.";
    this.#parts.warn({ type: "server.warning", message });
  }

  /** Resolves when no job waits any more. */
  async read(): Promise<void> {
    if (this.#waiting.length > 0) this.#reading ??= this.#readAll();
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    try {
      for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
        const job = await this.#parts.find(next.endpointId, next.jobId).catch(() => undefined);
        if (job) this.#parts.onRead(job);
      }
    } finally {
      this.#reading = undefined; // at once: a job that is added from now on is read anew
    }
  }
}

/** Seconds and nanoseconds. */
const hrTime = (ms: number): [number, number] => [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1_000_000)];
