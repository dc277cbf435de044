import type { FastifyReply } from "fastify";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../operations/needs.js";
import { wasWritten } from "../shared/replies/replies.js";

interface Heard {
  readonly digest: string;
  readonly stored: Promise<void>;
  /** Whether the reply could not be written. */
  isLost: boolean;
}

/** For each worker's latest jobs, by job: the last chunk, until the reply to it is written. */
const unheard = new WeakMap<LiveWorker, Map<string, Heard>>();

/**
 * Stores a chunk, or waits until it is stored if this is a repeat. Equal chunks are usually equal tokens: one is a repeat
 * only if the reply to the job's last chunk, which has the same bytes, was lost.
 */
export async function onceHeard(
  reply: FastifyReply,
  worker: LiveWorker,
  jobId: string,
  digest: string,
  store: () => Promise<void>,
): Promise<void> {
  const jobs = unheard.get(worker) ?? new Map<string, Heard>();
  unheard.set(worker, jobs);
  const last = jobs.get(jobId);
  const isRepeat = last?.isLost && last.digest === digest;
  const heard: Heard = { digest, stored: isRepeat ? last.stored.catch(store) : store(), isLost: false };
  jobs.delete(jobId);
  jobs.set(jobId, heard);
  const [oldest] = jobs.keys();
  if (oldest !== undefined && jobs.size > limits.unheardChunksMax) jobs.delete(oldest);
  const note = () => {
    if (!wasWritten(reply)) heard.isLost = true;
    else if (jobs.get(jobId) === heard) jobs.delete(jobId);
  };
  if (reply.raw.closed) note();
  else reply.raw.once("close", note);
  await heard.stored;
}
