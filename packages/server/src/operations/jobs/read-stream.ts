import { topics } from "../../bell.js";
import type { Signal } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { isFinal, type JobReport, type JobStatus } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import { waitFor } from "../../lines/waiters.js";
import type { Chunk } from "../../store/index.js";
import type { Needs } from "../needs.js";
import { LentChunks } from "./lent-chunks.js";
import { findJob } from "./read-job.js";

type Streaming = Needs<"reader" | "chunks" | "clock" | "bell" | "draining" | "streamShares">;

export interface Handed {
  readonly job: JobReport;
  readonly chunks: readonly Chunk[];
  /**
   * The job's status, but IN_PROGRESS while chunks are left after this reply, because clients stop at a final status.
   */
  readonly status: JobStatus;
  /** The memory of the chunks. */
  readonly lent: Pick<LentChunks, "release" | "isWanted">;
}

/**
 * The chunks not yet handed out, oldest first (contract: `/stream`), in borrowed memory. Waits while there are none and
 * the job goes on.
 */
export async function readStream(
  needs: Streaming,
  endpoint: Endpoint,
  jobId: string,
  waitMs: number,
  gone: Signal,
): Promise<Handed> {
  const signals = [gone, needs.draining];
  const wait = { topic: topics.job(jobId), untilAt: needs.clock.now() + waitMs, signals };
  const lent = new LentChunks(needs, endpoint.ownerNo, gone);
  try {
    const peeked = await waitFor(needs, wait, async () => {
      const job = await findJob(needs, endpoint, jobId);
      const { chunks, more } = await lent.handOut(job.no, limits.streamReplyBytesMax);
      return { value: { job, chunks, more }, done: chunks.length > 0 || isFinal(job.status) };
    });
    const isWhole = isFinal(peeked.job.status) || peeked.chunks.length === 0;
    return handed(isWhole ? peeked : await gather(needs, endpoint, jobId, peeked, gone), lent);
  } catch (error) {
    lent.release();
    throw error;
  }
}

interface Peeked {
  readonly job: JobReport;
  readonly chunks: Chunk[];
  readonly more: boolean;
}

/** Waits a moment longer, so that tokens arrive in batches instead of one by one. */
async function gather(
  needs: Streaming,
  endpoint: Endpoint,
  jobId: string,
  first: Peeked,
  gone: Signal,
): Promise<Peeked> {
  await needs.clock.sleep(limits.streamGatherMs, gone);
  try {
    const job = await needs.reader.find({ endpointNo: endpoint.no, jobId, now: needs.clock.now() });
    if (!job || job.starts !== first.job.starts) return { ...first, more: true };
    const bytes = first.chunks.reduce((sum, { output, metrics = "" }) => sum + output.length + metrics.length, 0);
    if (first.more || bytes >= limits.streamReplyBytesMax) return { ...first, job, more: true };
    const next = await needs.chunks.handOut({ jobNo: job.no, bytesMax: limits.streamReplyBytesMax - bytes });
    return { job, chunks: [...first.chunks, ...next.chunks], more: next.more };
  } catch {
    return { ...first, more: true }; // the first chunks count as handed out: a failure here must not lose them
  }
}

function handed({ job, chunks, more }: Peeked, lent: LentChunks): Handed {
  lent.keep(chunks);
  return { job, chunks, lent, status: more && isFinal(job.status) ? "IN_PROGRESS" : job.status };
}

/** The events of an event stream. Nothing is consumed, so it can be read again. */
export type StreamEvent =
  | { readonly kind: "chunks"; readonly chunks: readonly Chunk[] }
  | { readonly kind: "status"; readonly status: JobStatus; readonly start: number }
  | { readonly kind: "done"; readonly job: JobReport }
  | { readonly kind: "pause" };

/**
 * Follows a job to its end; refuses a job that is deleted. `from`: the last event the reader has seen. If the job starts
 * over, so do the chunks, at 0.
 */
export async function* followStream(
  needs: Streaming,
  endpoint: Endpoint,
  jobId: string,
  from: { start: number; index: number } | undefined,
  gone: Signal,
): AsyncGenerator<StreamEvent> {
  const signals = [gone, needs.draining];
  const isOver = () => gone.aborted || needs.draining.aborted;
  let start = from?.start ?? -1;
  let next = from ? from.index + 1 : 0;
  let told: string | undefined;
  const lent = new LentChunks(needs, endpoint.ownerNo, gone);
  try {
    while (!isOver()) {
      const wait = { topic: topics.job(jobId), untilAt: needs.clock.now() + limits.sseKeepAliveMs, signals };
      const seen = await waitFor(needs, wait, async () => {
        const job = await findJob(needs, endpoint, jobId);
        const chunks = await lent.read(job.no, job.starts === start ? next : 0, limits.chunkBytesMax);
        return {
          value: { job, chunks },
          done: chunks.length > 0 || isFinal(job.status) || told !== `${job.status}/${job.starts}`,
          lookAt: job.expiresAt,
        };
      });
      if (isOver()) return;
      const { job, chunks } = seen;
      if (job.starts !== start) {
        start = job.starts;
        next = 0;
      }
      const state = `${job.status}/${job.starts}`;
      if (state !== told && !isFinal(job.status)) yield { kind: "status", status: job.status, start };
      else if (chunks.length === 0 && !isFinal(job.status)) yield { kind: "pause" };
      told = state;
      if (chunks.length > 0) yield { kind: "chunks", chunks };
      next += chunks.length;
      if (chunks.length === 0 && isFinal(job.status)) return yield { kind: "done", job };
    }
  } finally {
    lent.release();
  }
}
