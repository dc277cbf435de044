import type { Signal } from "../../clock.js";
import type { ApiKey } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { withoutPassword } from "../../domain/jobs/webhook-url.js";
import { jobNotFound } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { isBound } from "../access/visible.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";
import { type LentBody, noRoom, nothingLent } from "./lend-status.js";
import { findJob } from "./read-job.js";

/** When and why everything happened to a job, for people who look at it. */
export async function jobStory(needs: Needs<"reader" | "clock">, caller: ApiKey, endpoint: Endpoint, jobId: string) {
  const job = await findJob(needs, endpoint, jobId);
  const [sent, happened] = await Promise.all([needs.reader.submission(job.no), needs.reader.happened(job.no)]);
  if (!sent) throw jobNotFound(jobId);
  const { takenAt, finishedAt, workerId } = job;
  return {
    id: job.id,
    status: job.status,
    createdAt: iso(job.createdAt),
    queuedAt: iso(job.queuedAt),
    ...(takenAt === undefined ? {} : { takenAt: iso(takenAt) }),
    ...(finishedAt === undefined ? {} : { finishedAt: iso(finishedAt) }),
    expiresAt: iso(job.expiresAt),
    starts: job.starts,
    ...(workerId === "" ? {} : { workerId }),
    lowPriority: job.lowPriority,
    executionTimeoutMs: job.executionTimeoutMs,
    inputBytes: sent.inputBytes,
    // its URL may hold a token: keys of chosen endpoints see no webhooks
    ...(sent.webhook === undefined || isBound(caller) ? {} : { webhook: withoutPassword(sent.webhook) }),
    happened: happened.map(({ at, ...rest }) => ({ at: iso(at), ...rest })),
  };
}

/** A job's input as it was sent; a large one lies in borrowed memory. */
export async function lendInput(
  needs: Needs<"reader" | "clock" | "shares">,
  endpoint: Endpoint,
  jobId: string,
  gone: Signal,
): Promise<LentBody> {
  const job = await findJob(needs, endpoint, jobId);
  const bytes = (await needs.reader.submission(job.no))?.inputBytes ?? 0;
  const share = bytes > limits.textReadBytesMax ? await needs.shares.ask(endpoint.ownerNo, bytes, gone) : nothingLent;
  if (!share) throw noRoom(`the input of job ${jobId}`);
  try {
    const pieces = await needs.reader.input(job.no);
    if (!pieces) throw jobNotFound(jobId);
    return { pieces, release: () => share.release(), isWanted: () => needs.shares.isWanted };
  } catch (error) {
    share.release();
    throw error;
  }
}
