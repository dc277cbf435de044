import { topics } from "../../bell.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { mayHappen, settleLoss } from "../../domain/jobs/job.js";
import { invalid, jobNotFound, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import type { HeldJob, Settled } from "../../store/index.js";
import { turns } from "../../turns.js";
import { actorOf, type Caller } from "../access/change-as.js";
import type { Needs } from "../needs.js";
import { findJob } from "./read-job.js";

type Changing = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit">;

/** The error of a job whose endpoint was deleted. */
export const endpointDeleted = "The endpoint was deleted (endpoint deleted).";

/** Tells everyone who waits for a job, or counts jobs, that it has ended. */
export function announceEnd(
  { bell, registry, emit }: Needs<"bell" | "registry" | "emit">,
  endpointNo: number,
  ended: Settled,
): void {
  bell.ring(topics.job(ended.id));
  bell.ring(topics.demand(endpointNo));
  bell.ring("expiries");
  if (ended.delivery) bell.ring("deliveries");
  const endpointId = registry.endpointByNo(endpointNo)?.id ?? "";
  emit({ type: "job.ended", endpointId, jobId: ended.id, status: ended.status, executionMs: ended.executionMs });
}

/** Cancels a waiting or running job (contract: `/cancel`). Cancelling a CANCELLED job succeeds again. */
export async function cancelJob(needs: Changing & Needs<"changes">, endpoint: Endpoint, jobId: string): Promise<void> {
  for (;;) {
    const job = await findJob(needs, endpoint, jobId);
    if (job.status === "CANCELLED") return;
    if (!mayHappen("cancel", job.status)) {
      throw new Refusal("INVALID_STATE", `The job is ${job.status}: only a waiting or running job can be cancelled.`);
    }
    const ended = await needs.changes.do(endpoint.ownerNo, () =>
      needs.jobs.change({ job, change: { by: "cancel" }, now: needs.clock.now() }),
    );
    if (!ended) continue; // it has changed meanwhile: look again
    announceEnd(needs, endpoint.no, ended);
    if (job.status === "IN_PROGRESS") ringStops(needs, job.workerNo);
    return;
  }
}

/** Sets a job's ttl, counted from its submission (`/status?ttl=`). If that has passed already, the job is deleted. */
export async function setTtl(
  needs: Changing & Needs<"changes">,
  endpoint: Endpoint,
  jobId: string,
  ttlMs: number,
): Promise<void> {
  if (!Number.isInteger(ttlMs) || ttlMs < limits.ttlMsMin || ttlMs > limits.ttlMsMax) {
    throw invalid(`'ttl' must be a whole number of milliseconds from ${limits.ttlMsMin} to ${limits.ttlMsMax}.`);
  }
  const job = await findJob(needs, endpoint, jobId);
  const now = needs.clock.now();
  const ttl = { job, ttlEndAt: job.createdAt + ttlMs, now };
  const found = await needs.changes.do(endpoint.ownerNo, () => needs.jobs.setTtl(ttl));
  needs.bell.ring("expiries");
  if (job.createdAt + ttlMs <= now) {
    // once the caller is told that it is gone, it must not be counted any more
    await needs.changes.do(endpoint.ownerNo, () => deleteExpired(needs, now));
    needs.bell.ring(topics.demand(endpoint.no));
  }
  needs.bell.ring(topics.job(jobId)); // requests waiting for this job look again, in case it is gone
  if (!found) throw jobNotFound(jobId);
}

/** Deletes a batch of expired jobs, oldest first, and stops those still running; returns whether there are more. */
export async function deleteExpired(needs: Needs<"jobs" | "bell" | "emit">, now: number): Promise<boolean> {
  const { deleted, stopped, more } = await needs.jobs.sweep({ now, limit: limits.sweepBatch });
  for (const job of stopped) {
    needs.bell.ring(topics.job(job.id));
    needs.bell.ring(topics.demand(job.endpointNo));
    ringStops(needs, job.workerNo);
  }
  if (deleted > 0) needs.emit({ type: "job.expired", count: deleted });
  return more;
}

/** Cancels an endpoint's waiting jobs for a caller (contract: `/purge-queue`); the first batch takes the audit entry along. */
export const purgeQueue = (needs: Changing & Needs<"purges">, caller: Caller, endpoint: Endpoint): Promise<number> =>
  auditing.run(actorOf(needs, caller, caller.via), () => {
    auditing.note({ action: "endpoint.purgeQueue", resource: endpoint.id });
    return cancelWaiting(needs, endpoint.no, "The queue was purged.");
  });

/** Cancels the jobs that are waiting at the time of the call, in batches so that other writes are not held up. */
export async function cancelWaiting(
  needs: Changing & Needs<"purges">,
  endpointNo: number,
  error: string,
): Promise<number> {
  const ownerNo = needs.registry.endpointByNo(endpointNo)?.ownerNo ?? 0;
  const upToPlace = await needs.reader.lastPlace();
  let removed = 0;
  for (;;) {
    const now = needs.clock.now();
    const purge = { endpointNo, upToPlace, error, now, limit: limits.purgeBatch };
    const batch = await needs.purges.do(ownerNo, () => needs.jobs.cancelWaiting(purge));
    for (const ended of batch) {
      if (turns.isOver) await turns.take([ownerNo, endpointNo]);
      announceEnd(needs, endpointNo, ended);
    }
    removed += batch.length;
    if (batch.length < limits.purgeBatch) return removed;
  }
}

/**
 * Takes a job away from a worker that lost it. `excused`: we took it back ourselves, so the start does not count.
 * `last`: how that worker ended, for the error of a job that is not started again.
 */
export async function loseJob(
  needs: Changing,
  held: HeldJob,
  why: string,
  excused: boolean,
  last?: string,
): Promise<void> {
  const isDeleted = needs.registry.endpointByNo(held.endpointNo)?.deletedAt !== undefined;
  const change = isDeleted
    ? ({ by: "cancel", error: endpointDeleted } as const) // nothing would ever run it
    : excused
      ? ({ by: "giveBack", excused: true } as const)
      : settleLoss(held, why, last);
  const settled = await needs.jobs.change({ job: held, change, now: needs.clock.now() });
  if (!settled) return; // its result came after all, or it was ended elsewhere
  if (change.by !== "giveBack") return announceEnd(needs, held.endpointNo, settled);
  ringWaiting(needs, held.endpointNo, held.id);
  needs.emit({
    type: "job.givenBack",
    endpointId: needs.registry.endpointByNo(held.endpointNo)?.id ?? "",
    jobId: held.id,
    workerId: needs.registry.workerByNo(held.workerNo)?.row.id ?? "",
    excused,
    why,
  });
}

/** Ends a running job that has exceeded its execution timeout. */
export async function timeOutJob(needs: Changing, held: HeldJob): Promise<void> {
  const error = "The job ran longer than its executionTimeout and was stopped.";
  const ended = await needs.jobs.change({ job: held, change: { by: "timeOut", error }, now: needs.clock.now() });
  if (!ended) return;
  announceEnd(needs, held.endpointNo, ended);
  ringStops(needs, held.workerNo);
}

/** Wakes everyone concerned when a worker has jobs to stop. */
export function ringStops({ bell }: Needs<"bell">, workerNo: number | undefined): void {
  if (workerNo === undefined) return;
  bell.ring(topics.stops(workerNo));
  bell.ring("workers");
}

/** Wakes everyone concerned when a job waits again. */
export function ringWaiting({ bell }: Needs<"bell">, endpointNo: number, jobId: string): void {
  bell.ring(topics.queue(endpointNo));
  bell.ring(topics.demand(endpointNo));
  bell.ring(topics.job(jobId));
}
