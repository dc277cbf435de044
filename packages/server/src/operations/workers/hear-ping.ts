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
 * A heartbeat with the ids in progress: what two of them leave out is lost, but for what a worker has prefetched; what one
 * leaves out has stopped.
 */
export async function hearPing(needs: Hearing, worker: LiveWorker, listed: ReadonlySet<string>): Promise<void> {
  await noteCall(needs, worker, { isPing: true });
  const held = await needs.reader.heldBy(worker.row.no);
  const stopped = held.filter((job) => job.stopWanted && !listed.has(job.id)).map((job) => job.no);
  if (stopped.length > 0) {
    await needs.jobs.confirmStopped(worker.row.no, stopped);
    needs.bell.ring("workers");
    needs.bell.ring("expiries");
  }
  const ahead = await hearBegun(needs, worker, held, listed);
  // nor is a job left out whose answer is not yet written
  const running = held.filter((job) => !job.stopWanted && job !== ahead && !worker.unwritten.has(job.id));
  const { heard, lost } = judge(worker.heard, running, listed, needs.clock.now());
  worker.heard = heard;
  // a job that it was taken to have stopped, or that is another's by now, does not make it busy for ever
  if (held.some((job) => listed.has(job.id))) worker.busyAt = needs.clock.now();
  for (const job of running) if (lost.includes(job.id)) await loseJob(needs, job, finishedSilently, false);
}

/** A worker's last words before it exits: kept as the reason of its failed start. */
export async function hearUnhealthy(needs: Hearing, worker: LiveWorker, words: string): Promise<void> {
  await noteCall(needs, worker, { isPing: true });
  const note = words.slice(0, limits.logTailBytes).replaceAll("\0", "");
  await needs.registry.changeWorker(worker, { by: "lastWords", exit: { code: undefined, signal: undefined, note } });
}

/** A job that was tried again may have to be stopped again: each stop is one of its own. */
const stopOf = (job: HeldJob) => `${job.no}@${job.finishedAt}`;

/** Jobs a worker is to stop: held until there are some, or 20 s have passed (worker protocol: `job-stop`). */
export async function awaitStops(needs: Hearing, worker: LiveWorker, gone: Signal): Promise<string[]> {
  if (worker.row.endedAt === undefined) await noteCall(needs, worker, {});
  const signals = worker.row.endedAt === undefined ? [gone, worker.dismissed] : [gone];
  const wait = { topic: topics.stops(worker.row.no), untilAt: needs.clock.now() + limits.takeHoldMs, signals };
  const stops = await waitFor(needs, wait, async () => {
    const held = await needs.reader.heldBy(worker.row.no);
    const value = held.filter((job) => job.stopWanted && !worker.told.has(stopOf(job)));
    return { value, done: value.length > 0 };
  });
  // each is told once: a worker that is told again at once would spin
  for (const job of stops) worker.told.add(stopOf(job));
  return stops.map((job) => job.id);
}
