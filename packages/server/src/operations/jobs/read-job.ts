import { topics } from "../../bell.js";
import type { Signal } from "../../clock.js";
import type { Scope } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { type HostView, isThere } from "../../domain/hosts/host.js";
import { isFinal, type JobReport } from "../../domain/jobs/job.js";
import { statusText, type Waiting } from "../../domain/jobs/status-text.js";
import { waitReason } from "../../domain/jobs/wait-reason.js";
import { namedFor } from "../../domain/workers/holders.js";
import { isThrottled, workerState } from "../../domain/workers/worker.js";
import { jobNotFound } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { waitFor } from "../../lines/waiters.js";
import { startAmong } from "../../memory/live-workers.js";
import type { LiveWorker, Needs } from "../needs.js";
import { crashPause } from "../workers/crash-pause.js";
import { stillStopping } from "../workers/still-stopping.js";

type Reading = Needs<"reader" | "tallies" | "clock" | "registry" | "here">;

/** A job as it is now; refused if it never existed or is gone. */
export async function findJob(
  { reader, clock }: Needs<"reader" | "clock">,
  endpoint: Endpoint,
  jobId: string,
): Promise<JobReport> {
  const job = await reader.find({ endpointNo: endpoint.no, jobId, now: clock.now() });
  if (!job) throw jobNotFound(jobId);
  return job;
}

/** Whose job is described: an endpoint's, to a key with this scope. */
export interface Asked {
  readonly endpoint: Endpoint;
  readonly scope: Scope;
}

/** The status body of a job that was just read (contract: Job). */
export const describeJob = async (needs: Reading, asked: Asked, job: JobReport): Promise<string> =>
  (await describeJobs(needs, asked, [job]))[0] as string;

/** The status bodies of jobs of one endpoint. Why they wait is looked up once for all of them. */
export async function describeJobs(needs: Reading, asked: Asked, jobs: readonly JobReport[]): Promise<string[]> {
  const isWaited = jobs.some(({ status }) => status === "IN_QUEUE");
  const facts = isWaited ? await waitingFacts(needs, asked) : undefined;
  return Promise.all(
    jobs.map(async (job) => {
      const waiting = facts && job.status === "IN_QUEUE" ? await whyWaiting(needs, facts, job) : undefined;
      return statusText(job, needs.clock.now(), waiting);
    }),
  );
}

/** The job once it is final, or as it is after `waitMs` (contract: `wait`). */
export async function awaitJob(
  needs: Needs<"reader" | "clock" | "bell" | "draining">,
  endpoint: Endpoint,
  jobId: string,
  waitMs: number,
  gone: Signal,
): Promise<JobReport> {
  const wait = {
    topic: topics.job(jobId),
    untilAt: needs.clock.now() + waitMs,
    signals: [gone, needs.draining],
  };
  return waitFor(needs, wait, async () => {
    const value = await findJob(needs, endpoint, jobId);
    return { value, done: isFinal(value.status), lookAt: value.expiresAt };
  });
}

type WaitingFacts = Omit<Parameters<typeof waitReason>[0], "lowPriority">;

/** Why an endpoint's jobs wait, as far as the reason is the same for all of them. */
async function waitingFacts(needs: Reading, asked: Asked): Promise<WaitingFacts & { endpoint: Endpoint }> {
  const endpoint = needs.registry.endpointByNo(asked.endpoint.no) ?? asked.endpoint; // it may have changed since the wait began
  const held = await needs.tallies.holdings(endpoint.no);
  const workers = needs.registry.workersOf(endpoint.no);
  const states = workers.map(({ row }) => workerState(row, held.get(row.no) ?? 0));
  const stopping = await stillStopping(
    needs,
    workers.map(({ row }) => row),
    held,
  );
  const { doing, isFull } = startAmong(workers) ?? {};
  const [throttled, pause] = [whyThrottled(workers, asked.scope), crashPause(needs, endpoint)];
  return {
    endpoint,
    states,
    stillStopping: stopping.size,
    doing,
    isFull,
    pause,
    throttled,
    obstacle: obstacle(needs, endpoint),
  };
}

async function whyWaiting(
  needs: Reading,
  facts: WaitingFacts & { endpoint: Endpoint },
  job: JobReport,
): Promise<Waiting> {
  const position = await needs.reader.position({
    endpointNo: facts.endpoint.no,
    place: job.place,
    max: limits.queuePositionMax,
  });
  return {
    ...waitReason({ ...facts, lowPriority: job.lowPriority }),
    queuePosition: position < limits.queuePositionMax ? position : undefined,
  };
}

/** Why a worker has no place yet, for a key with this scope; undefined if every worker has one. */
export function whyThrottled(workers: readonly LiveWorker[], scope: Scope): string | undefined {
  const why = workers.find(({ row }) => row.wanted === "running" && isThrottled(row))?.row.why;
  return why && namedFor(scope, why);
}

/** Why no host can run this endpoint's workers; undefined if one can. */
export function obstacle(
  needs: Needs<"here" | "registry" | "clock">,
  endpoint: Endpoint,
  hosts: readonly HostView[] = liveHosts(needs),
) {
  const { locations, dataCenterIds } = endpoint.settings;
  if (hosts.some((host) => isThere(host, endpoint.settings))) return undefined;
  const places = [...new Set(hosts.map(({ location }) => location))].join(" and ");
  const whose = hosts.length === 1 ? "the only host here is" : "the hosts here are";
  const wanted = [locations.replaceAll(",", " or "), dataCenterIds.join(" or ")].filter(Boolean).join(" in ");
  return { reason: "location" as const, detail: `The endpoint wants ${wanted}, and ${whose} in ${places}.` };
}

/** The hosts that can be given workers: the hosts of this server, and hosts whose server is alive. */
export function liveHosts({ here, registry, clock }: Needs<"here" | "registry" | "clock">): HostView[] {
  const aliveSince = clock.now() - limits.leaseMs;
  const others = registry.hosts.filter(({ no, seenAt }) => !here.tends(no) && seenAt >= aliveSince);
  const live = registry.liveWorkers();
  const ours = here.hosts().map(({ no, facts }) => ({ ...facts, no }));
  return [...ours, ...others].map((host) => ({
    ...host,
    workers: live.filter(({ row }) => row.hostNo === host.no).length,
  }));
}
