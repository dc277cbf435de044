import { topics } from "../../bell.js";
import type { Signal } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { isFinal, type JobReport } from "../../domain/jobs/job.js";
import { waitFor } from "../../lines/waiters.js";
import type { Needs } from "../needs.js";
import { findJob } from "./read-job.js";

/**
 * Waits until the job is final; its ttl and executionTimeout bound the wait. If the caller goes away or the server
 * stops, resolves with the job as it is.
 */
export function awaitEnd(
  needs: Needs<"reader" | "clock" | "bell" | "draining">,
  endpoint: Endpoint,
  jobId: string,
  gone: Signal,
): Promise<JobReport> {
  const wait = { topic: topics.job(jobId), untilAt: Number.POSITIVE_INFINITY, signals: [gone, needs.draining] };
  return waitFor(needs, wait, async () => {
    const job = await findJob(needs, endpoint, jobId);
    return { value: job, done: isFinal(job.status), lookAt: job.expiresAt };
  });
}
