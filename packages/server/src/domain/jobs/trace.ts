/** The trace that a job belongs to (W3C Trace Context), and the span that submitted the job, if the client named one. */
export interface JobTrace {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly parentSpanId: string | undefined;
  readonly isSampled: boolean;
}

const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** A client's `traceparent` as it is kept with the job: version 00, without what newer versions add; undefined if invalid. */
export function readTraceparent(header: string | undefined): string | undefined {
  const [, version, traceId = "", spanId = "", flags = "", more] = pattern.exec(header ?? "") ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return `00-${traceId}-${spanId}-${flags}`;
}

/** A job's trace: its client's, or one of its own, whose id is the job's. */
export function traceOf(jobId: string, kept: string | undefined): JobTrace {
  if (kept === undefined) {
    const traceId = jobId.replaceAll(/^sync-|-u1$|-/g, "");
    return { traceId, parentSpanId: undefined, isSampled: true };
  }
  const [, traceId = "", parentSpanId, flags = "00"] = kept.split("-");
  return { traceId, parentSpanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** A job as it was submitted or, the last time, retried: a retry adds spans of its own to the trace. */
export interface QueuedJob {
  readonly id: string;
  readonly queuedAt: number;
}

/** The id of one of a job's spans. It follows from its name, so that every server that reports on the job has the same. */
export function spanIdOf({ id, queuedAt }: QueuedJob, name: string): string {
  // FNV-1a of 64 bits
  let hash = 0xcbf29ce484222325n;
  for (const character of `${id} ${queuedAt} ${name}`) {
    hash ^= BigInt(character.codePointAt(0) as number);
    hash = BigInt.asUintN(64, hash * 0x100000001b3n);
  }
  return (hash === 0n ? 1n : hash).toString(16).padStart(16, "0");
}

/** What the next one in the chain is told, so that its spans belong to the job's span of this name. */
export function traceparentOf(job: QueuedJob, kept: string | undefined, name: string): string {
  const { traceId, isSampled } = traceOf(job.id, kept);
  return `00-${traceId}-${spanIdOf(job, name)}-${isSampled ? "01" : "00"}`;
}

/** The name of the span of a job's nth run, beginning with 1; the handler's own spans belong to it. */
export const runSpan = (starts: number): string => `run ${starts}`;
