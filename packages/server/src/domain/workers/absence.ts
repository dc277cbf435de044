import { limits } from "../../limits/index.js";

/** What one server has heard in the pings of one worker: begun anew at the server's start. */
export interface Heard {
  /** Job ids that the last ping, late enough for each, left out, with the take it was about. */
  readonly absent: ReadonlyMap<string, number>;
}
export const nothingHeard: Heard = { absent: new Map() };

interface Held {
  readonly id: string;
  readonly takenAt: number;
}

/**
 * Judges a ping: a job is lost when two pings in a row, both 5 s or more after its take, leave it out.
 * One ping is never enough: they come from another process, retried and late.
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
