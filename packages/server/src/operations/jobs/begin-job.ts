import { hearList, isPrefetching, nextOf } from "../../domain/jobs/prefetch.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { HeldJob } from "../../store/index.js";
import type { Needs } from "../needs.js";

type Beginning = Needs<"jobs" | "reader" | "clock" | "bell" | "emit">;

/** A worker has posted a result: where it prefetches, it begins the next job now. */
export async function beginNext(needs: Beginning, worker: LiveWorker, now: number): Promise<void> {
  if (!isPrefetching(worker.habits)) return;
  try {
    const next = nextOf(worker.habits, await needs.reader.heldBy(worker.row.no));
    if (next) await begin(needs, next, now, now);
  } catch (error) {
    // its times are wrong then; the result is stored, and must not be sent again for that
    needs.emit({ type: "server.warning", message: "a job's beginning could not be noted", error });
  }
}

/** Hears which jobs a worker has begun; resolves with the one that waits there for an earlier job to end. */
export async function hearBegun(
  needs: Beginning,
  worker: LiveWorker,
  held: readonly HeldJob[],
  listed: ReadonlySet<string>,
): Promise<HeldJob | undefined> {
  const before = worker.habits.ahead;
  // a job whose answer is not yet written is left out by every worker
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
  // it has not begun yet: its time is not over before its worker counts as silent
  if (ahead) await begin(needs, ahead, now, now + limits.workerSilenceMs);
  return ahead;
}

async function begin(needs: Beginning, job: HeldJob, beganAt: number, beginsBy: number): Promise<void> {
  await needs.jobs.begin(job, beganAt, beginsBy);
  needs.bell.ring("deadlines");
}
