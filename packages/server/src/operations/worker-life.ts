import { topics } from "../bell.js";
import { type Exit, failedToStart } from "../domain/worker.js";
import type { LiveWorker } from "../registry.js";
import type { HeldJob } from "../store.js";
import { loseJob } from "./change-job.js";
import type { Needs } from "./needs.js";

type Living = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit">;

const message = "a worker's readiness could not be stored";

/** Any protocol call is a sign of life; the first take says that the worker is ready. */
export async function noteCall(
  { clock, registry, bell, emit }: Needs<"clock" | "registry" | "bell" | "emit">,
  worker: LiveWorker,
  call: { isTake?: boolean; isPing?: boolean },
): Promise<void> {
  const now = clock.now();
  worker.seenAt = now;
  if (call.isPing && !worker.row.hasPinged) {
    await registry.patchWorker(worker, { hasPinged: true });
    bell.ring("workers");
  }
  if (!call.isTake) return;
  worker.busyAt = Math.max(worker.busyAt, worker.row.readyAt ?? now);
  if (worker.row.readyAt !== undefined) return;
  const endpoint = registry.endpointByNo(worker.row.endpointNo);
  // the first job need not wait for this to be on disk: lost in a crash, it is noted at the next take
  registry.patchWorker(worker, { readyAt: now }).catch((error) => emit({ type: "server.warning", message, error }));
  if (endpoint && endpoint.failedStarts > 0) await registry.noteStart(endpoint.no, { failedStarts: 0 });
  emit({
    type: "worker.ready",
    endpointId: endpoint?.id ?? "",
    workerId: worker.row.id,
    afterMs: now - worker.row.createdAt,
  });
  bell.ring(topics.demand(worker.row.endpointNo));
  bell.ring("workers");
}

/** No more jobs for this worker, in the store, from now on; when its last job is over the scaler stops it. */
export async function closeWorker(
  { clock, registry, bell, emit }: Needs<"clock" | "registry" | "bell" | "emit">,
  worker: LiveWorker,
  why: string,
): Promise<void> {
  if (worker.row.wanted !== "running") return;
  await registry.patchWorker(worker, { wanted: "closed", closedAt: clock.now() });
  emit({ type: "worker.stopping", endpointId: endpointIdOf(registry, worker), workerId: worker.row.id, why });
  bell.ring(topics.demand(worker.row.endpointNo));
}

/** Asks for a worker's stop; it is killed after `graceMs`. */
export async function stopWorker(
  { clock, registry, bell, emit }: Living,
  worker: LiveWorker,
  why: string,
  graceMs: number,
) {
  const now = clock.now();
  const killAt = now + graceMs;
  if (worker.row.wanted === "stopped") {
    if (killAt < (worker.row.killAt ?? Number.POSITIVE_INFINITY)) await registry.patchWorker(worker, { killAt });
  } else {
    emit({ type: "worker.stopping", endpointId: endpointIdOf(registry, worker), workerId: worker.row.id, why });
    await registry.patchWorker(worker, { wanted: "stopped", stopAt: now, killAt });
  }
  bell.ring("workers");
}

/**
 * A worker has ended: what it held is given back (excused where we had asked it to stop), what it was to stop has stopped.
 * Its row says so last: after a crash in between it is found not ended, and the rest is given back then.
 */
export async function endWorker(needs: Living, worker: LiveWorker, exit: Exit, why: string): Promise<void> {
  if (worker.row.endedAt !== undefined) return;
  const { row } = worker;
  const said = row.exit?.note;
  const ended = { endedAt: needs.clock.now(), exit: { ...exit, note: said ?? exit.note } };
  worker.row = { ...row, ...ended };
  worker.dismissed.abort(); // or what is given back now would be handed to its own poll
  let held: number;
  try {
    held = await giveBackAll(needs, worker);
    await needs.registry.patchWorker(worker, ended);
    held += await giveBackAll(needs, worker); // what a take that was on its way has brought meanwhile
  } catch (error) {
    worker.row = row;
    throw error;
  }
  needs.emit({ type: "worker.ended", endpointId: endpointIdOf(needs.registry, worker), workerId: row.id, exit, why });
  if (failedToStart(row, held)) await noteFailedStart(needs, worker, said ?? exit.note ?? why);
  needs.bell.ring(topics.demand(row.endpointNo));
  needs.bell.ring("expiries");
}

async function giveBackAll(needs: Living, { row }: LiveWorker): Promise<number> {
  const held = await needs.reader.heldBy(row.no);
  await settleOrphans(needs, held, row.wanted === "stopped");
  return held.length;
}

/** What nobody holds any more: running jobs are given back, stopped ones have stopped. */
export async function settleOrphans(needs: Living, held: readonly HeldJob[], excused: boolean): Promise<void> {
  const why = excused ? "its worker was stopped by us" : "Each worker that ran this job was lost";
  await Promise.all(held.map((job) => (job.stopWanted ? undefined : loseJob(needs, job, why, excused))));
  // also those that were cancelled just now, because their endpoint is deleted
  await Promise.all(held.map((job) => needs.jobs.confirmStopped(job.workerNo, [job.no])));
}

async function noteFailedStart(needs: Living, worker: LiveWorker, verdict: string): Promise<void> {
  const endpoint = needs.registry.endpointByNo(worker.row.endpointNo);
  // a worker of an older version says nothing about the present one
  if (!endpoint || endpoint.deletedAt !== undefined || worker.row.version !== endpoint.version) return;
  const failedStarts = endpoint.failedStarts + 1;
  await needs.registry.noteStart(endpoint.no, {
    failedStarts,
    failedAt: needs.clock.now(),
    verdict: verdict.replaceAll("\0", ""),
  });
  needs.emit({
    type: "worker.startFailed",
    endpointId: endpoint.id,
    workerId: worker.row.id,
    failedStarts,
    why: verdict,
  });
}

const endpointIdOf = (registry: Living["registry"], worker: LiveWorker) =>
  registry.endpointByNo(worker.row.endpointNo)?.id ?? "";
