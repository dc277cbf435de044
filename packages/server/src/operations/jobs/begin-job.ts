import { hearList, isPrefetching, nextOf } from "../../domain/jobs/prefetch.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { HeldJob } from "../../store/index.js";
import type { Needs } from "../needs.js";

type Beginning = Needs<"jobs" | "reader" | "clock" | "bell" | "emit">;

/** Called when a worker has posted a result: if it prefetches, it begins its next job now. */
export async function beginNext(needs: Beginning, worker: LiveWorker, now: number): Promise<void> {
  if (!isPrefetching(worker.habits)) return;
  try {
    const next = nextOf(worker.habits, await needs.reader.heldBy(worker.row.no));
    if (next) await begin(needs, next, now, now);
  } catch (error) {
    // only this job's times are wrong then: the result is stored, and the worker must not send it again because of this
    needs.emit({ type: "server.warning", message: "the start of a prefetched job could not be recorded", error });
  }
}

/** Records which jobs a worker has begun; resolves with the job that it has prefetched and not begun. */
export async function hearBegun(
  needs: Beginning,
  worker: LiveWorker,
  held: readonly HeldJob[],
  listed: ReadonlySet<string>,
): Promise<HeldJob | undefined> {
  const before = worker.habits.ahead;
  // a worker cannot list a job before the reply that brings it is written
  const handed = held.filter((job) => !worker.unwritten.has(job.id));
  const { habits, ahead, begun } = hearList(worker.habits, handed, listed);
  worker.habits = habits;
  const now = needs.clock.now();
  const doneAt = isPrefetching(habits) ? (worker.row.lastDoneAt ?? 0) : 0;
  for (const job of begun) {
    if (job.id !== before && doneAt <= job.takenAt) continue;
    const beganAt = Math.max(job.takenAt, doneAt);
    await begin(needs, job, beganAt, beganAt);
  }
  // a prefetched job must not time out before its worker counts as silent
  if (ahead) await begin(needs, ahead, now, now + limits.workerSilenceMs);
  return ahead;
}

async function begin(needs: Beginning, job: HeldJob, beganAt: number, beginsBy: number): Promise<void> {
  await needs.jobs.begin({ job, beganAt, beginsBy });
  needs.bell.ring("deadlines");
}
