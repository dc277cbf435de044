import { limits } from "../../limits/index.js";

/** What this server has heard in one worker's pings. Not kept across restarts of the server. */
export interface Heard {
  /** Ids of jobs missing from the last ping that was late enough to judge them, with the time of the take. */
  readonly absent: ReadonlyMap<string, number>;
}
export const nothingHeard: Heard = { absent: new Map() };

interface Held {
  readonly id: string;
  readonly takenAt: number;
}

/**
 * Judges a ping: a job is lost when two pings in a row, both at least 5 s after its take, leave it out. One ping is
 * never enough, because pings come from another process, are retried, and may be late.
 */
export function hearPing(before: Heard, held: readonly Held[], listed: ReadonlySet<string>, now: number) {
  const absent = new Map<string, number>();
  const lost: string[] = [];
  for (const job of held) {
    if (listed.has(job.id) || now - job.takenAt < limits.absentAfterMs) continue;
    if (before.absent.get(job.id) === job.takenAt) lost.push(job.id);
    else absent.set(job.id, job.takenAt);
  }
  return { heard: { absent } satisfies Heard, lost };
}
