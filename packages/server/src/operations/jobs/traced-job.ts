import type { TracedJob } from "../../domain/jobs/spans.js";
import { startPhases } from "../../domain/workers/cold-start.js";
import type { Needs } from "../needs.js";

/** What a job's trace is made of, once it has ended; undefined if the job or its endpoint is gone already. */
export async function tracedJob(
  { reader, registry, clock }: Needs<"reader" | "registry" | "clock">,
  endpointId: string,
  jobId: string,
): Promise<TracedJob | undefined> {
  const endpoint = registry.endpoint(endpointId);
  const job = endpoint && (await reader.find({ endpointNo: endpoint.no, jobId, now: clock.now() }));
  if (!job || job.finishedAt === undefined) return undefined;
  const [sent, happened] = await Promise.all([reader.submission(job.no), reader.happened(job.no)]);
  const row = registry.worker(job.workerId)?.row;
  return {
    ...{ id: job.id, status: job.status, starts: job.starts, workerId: job.workerId, happened, trace: sent?.trace },
    ...{ queuedAt: job.queuedAt, takenAt: job.takenAt, finishedAt: job.finishedAt },
    endpoint: { id: endpoint.id, name: endpoint.settings.name },
    worker: row && { createdAt: row.createdAt, phases: startPhases(row) },
  };
}
