import { topics } from "../../bell.js";
import type { Signal } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { isFinal, type JobReport } from "../../domain/jobs/job.js";
import { limits } from "../../limits/index.js";
import { waitFor } from "../../lines/waiters.js";
import type { Chunk } from "../../store/index.js";
import type { Needs } from "../needs.js";
import { LentChunks } from "./lent-chunks.js";
import { findJob } from "./read-job.js";

type Following = Needs<"reader" | "chunks" | "clock" | "bell" | "draining" | "streamShares">;

/** A job's output, as it arrives. */
export type OutputEvent =
  | { readonly kind: "chunks"; readonly chunks: readonly Chunk[] }
  /** The job was given back and starts over: its output so far is void. */
  | { readonly kind: "again" }
  /** Nothing has arrived for a while. */
  | { readonly kind: "quiet" }
  | { readonly kind: "end"; readonly job: JobReport };

/**
 * Follows a job's chunks to its end without consuming them, reading at each ring for the job. Ends without an `end`
 * event if the reader goes away or the server stops. Refuses a job that vanishes.
 */
export async function* followOutput(
  needs: Following,
  endpoint: Endpoint,
  jobId: string,
  gone: Signal,
): AsyncGenerator<OutputEvent> {
  const signals = [gone, needs.draining];
  const isOver = () => signals.some(({ aborted }) => aborted);
  const lent = new LentChunks(needs, endpoint.ownerNo, gone);
  let job = await findJob(needs, endpoint, jobId);
  let next = 0;
  try {
    while (!isOver()) {
      const wait = { topic: topics.job(jobId), untilAt: needs.clock.now() + limits.sseKeepAliveMs, signals };
      const seen = await waitFor(needs, wait, async () => {
        const value = await look(needs, lent, endpoint, job, next);
        const isNews = value.chunks.length > 0 || value.isAgain || isFinal(value.job.status);
        job = value.job;
        if (value.isAgain) next = 0;
        return { value, done: isNews, lookAt: job.expiresAt };
      });
      if (isOver()) return;
      if (seen.isAgain) yield { kind: "again" };
      if (seen.chunks.length > 0) yield { kind: "chunks", chunks: seen.chunks };
      else if (isFinal(job.status)) return yield { kind: "end", job };
      else if (!seen.isAgain) yield { kind: "quiet" };
      next += seen.chunks.length;
    }
  } finally {
    lent.release();
  }
}

interface Seen {
  readonly job: JobReport;
  readonly chunks: readonly Chunk[];
  readonly isAgain: boolean;
}

/** The chunks from `next` on. The job is read only if there are none, so that a token costs one read. */
async function look(
  needs: Following,
  lent: LentChunks,
  endpoint: Endpoint,
  known: JobReport,
  next: number,
): Promise<Seen> {
  const chunks = await chunksOf(lent, known, next);
  if (chunks.length > 0) return { job: known, chunks, isAgain: false };
  const job = await findJob(needs, endpoint, known.id);
  const isAgain = next > 0 && (job.starts !== known.starts || job.status === "IN_QUEUE");
  const from = isAgain || job.starts !== known.starts ? 0 : next;
  // a job that has ended writes no more: this also finds chunks that came between the two reads
  return { job, chunks: await chunksOf(lent, job, from), isAgain };
}

/** Only the chunks of this start: a later start gives a different answer. */
async function chunksOf(lent: LentChunks, { no, starts }: JobReport, next: number): Promise<Chunk[]> {
  const found = await lent.readValues(no, next, limits.openaiReadBytesMax);
  return found.filter(({ start }) => start === starts);
}
