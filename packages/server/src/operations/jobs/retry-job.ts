import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { mayHappen } from "../../domain/jobs/job.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";
import { withinQueue } from "../usage/quotas.js";
import { stopWorker } from "../workers/worker-life.js";
import { ringWaiting } from "./change-job.js";
import { findJob } from "./read-job.js";

type Retrying = Needs<
  "jobs" | "reader" | "clock" | "bell" | "registry" | "emit" | "here" | "chunks" | "tallies" | "queueRoom"
>;

/** Puts a FAILED or TIMED_OUT job at the back of the queue (contract: `/retry`). */
export async function retryJob(needs: Retrying, endpoint: Endpoint, jobId: string): Promise<void> {
  const job = await findJob(needs, endpoint, jobId);
  if (!mayHappen("retry", job.status)) {
    throw new Refusal("INVALID_STATE", `The job is ${job.status}: only a FAILED or TIMED_OUT job can be retried.`);
  }
  if (job.stopWanted && job.workerNo !== undefined) await replaceHolder(needs, job.workerNo);
  const trim = { endpointNo: endpoint.no, jobNo: job.no, most: limits.chunksTrimmedAtOnce };
  while ((await needs.chunks.trim(trim)) === trim.most);
  const retry = () => needs.jobs.change({ job, change: { by: "retry" }, now: needs.clock.now() });
  const retried = await withinQueue(needs, endpoint, retry);
  if (!retried) return retryJob(needs, endpoint, jobId);
  ringWaiting(needs, endpoint.no, jobId);
}

/** Stops a worker that still runs the job's previous attempt: its result would be taken for the new attempt's. */
async function replaceHolder(needs: Retrying, workerNo: number): Promise<void> {
  const worker = needs.registry.workerByNo(workerNo);
  if (!worker || worker.row.endedAt !== undefined) return;
  const others = (await needs.reader.heldBy(workerNo)).some((held) => !held.stopWanted);
  const graceMs = others ? needs.here.stopGraceMs : limits.stoppedJobGraceMs;
  await stopWorker(needs, worker, "a job that it has not stopped yet is being retried", graceMs);
}
