import { topics } from "../../bell.js";
import type { Signal } from "../../clock.js";
import { hearPing as judge } from "../../domain/workers/absence.js";
import { limits } from "../../limits/index.js";
import { waitFor } from "../../lines/waiters.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { HeldJob } from "../../store/index.js";
import { hearBegun } from "../jobs/begin-job.js";
import { loseJob } from "../jobs/change-job.js";
import { finishedSilently } from "../jobs/take-jobs.js";
import type { Needs } from "../needs.js";
import { noteCall } from "./worker-life.js";

type Hearing = Needs<"jobs" | "reader" | "clock" | "bell" | "registry" | "emit">;

/**
 * A heartbeat with the ids in progress. A running job missing from two of them is lost, unless the worker has
 * prefetched it; a job to be stopped has stopped once it is missing from one.
 */
export async function hearPing(needs: Hearing, worker: LiveWorker, listed: ReadonlySet<string>): Promise<void> {
  await noteCall(needs, worker, { isPing: true });
  const held = await needs.reader.heldBy(worker.row.no);
  const stopped = held.filter((job) => job.stopWanted && !listed.has(job.id)).map((job) => job.no);
  if (stopped.length > 0) {
    await needs.jobs.confirmStopped({ workerNo: worker.row.no, jobNos: stopped });
    needs.bell.ring("workers");
    needs.bell.ring("expiries");
  }
  const ahead = await hearBegun(needs, worker, held, listed);
  // a job cannot be listed either before the reply that brings it is written
  const running = held.filter((job) => !job.stopWanted && job !== ahead && !worker.unwritten.has(job.id));
  const { heard, lost } = judge(worker.heard, running, listed, needs.clock.now());
  worker.heard = heard;
  // jobs that it should have stopped, or that are another worker's by now, must not keep it busy for ever
  if (held.some((job) => listed.has(job.id))) worker.busyAt = needs.clock.now();
  const gone = new Set(lost);
  for (const job of running) if (gone.has(job.id)) await loseJob(needs, job, finishedSilently, false);
}

/** Keeps a worker's last words before it exits, as the reason of its failed start. */
export async function hearUnhealthy(needs: Hearing, worker: LiveWorker, words: string): Promise<void> {
  await noteCall(needs, worker, { isPing: true });
  const note = words.slice(0, limits.logTailBytes).replaceAll("\0", "");
  await needs.registry.changeWorker(worker, { by: "lastWords", exit: { note } });
}

/** Identifies one stop: a job that was retried may have to be stopped again. */
const stopOf = (job: HeldJob) => `${job.no}@${job.finishedAt}`;

/**
 * The jobs that a worker is to stop: the poll is held until there are some or 20 s have passed (worker protocol:
 * `job-stop`).
 */
export async function awaitStops(needs: Hearing, worker: LiveWorker, gone: Signal): Promise<string[]> {
  if (worker.row.endedAt === undefined) await noteCall(needs, worker, {});
  const signals = worker.row.endedAt === undefined ? [gone, worker.dismissed] : [gone];
  const wait = { topic: topics.stops(worker.row.no), untilAt: needs.clock.now() + limits.takeHoldMs, signals };
  const stops = await waitFor(needs, wait, async () => {
    const held = await needs.reader.heldBy(worker.row.no);
    const value = held.filter((job) => job.stopWanted && !worker.told.has(stopOf(job)));
    return { value, done: value.length > 0 };
  });
  // name each stop once: a worker told again at once would poll in a tight loop
  for (const job of stops) worker.told.add(stopOf(job));
  return stops.map((job) => job.id);
}
