import type { FastifyReply } from "fastify";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../operations/needs.js";
import { wasWritten } from "../shared/replies/replies.js";

/** For each worker's latest jobs, by job: the last chunk, if it was stored but the reply could not be written. */
const unheard = new WeakMap<LiveWorker, Map<string, string>>();

/**
 * Equal chunks are usually equal tokens. A chunk is a repeat only if the reply to the first one was lost: then the next
 * call for the job has the same bytes, and is ignored.
 */
export async function onceHeard(
  reply: FastifyReply,
  worker: LiveWorker,
  jobId: string,
  digest: string,
  store: () => Promise<void>,
): Promise<void> {
  const last = unheard.get(worker)?.get(jobId);
  unheard.get(worker)?.delete(jobId);
  if (last !== digest) await store();
  const note = () => {
    if (wasWritten(reply)) return;
    const jobs = unheard.get(worker) ?? new Map<string, string>();
    unheard.set(worker, jobs.set(jobId, digest));
    const [oldest] = jobs.keys();
    if (oldest !== undefined && jobs.size > limits.unheardChunksMax) jobs.delete(oldest);
  };
  if (reply.raw.closed) note();
  else reply.raw.once("close", note);
}
