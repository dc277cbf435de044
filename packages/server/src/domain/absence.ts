import { limits } from "../limits.js";

/** What one server has heard in the pings of one worker: begun anew at the server's start. */
export interface Heard {
  /** Job ids that the last ping, late enough for each, left out. */
  readonly absent: ReadonlySet<string>;
}
export const nothingHeard: Heard = { absent: new Set() };

interface Held {
  readonly id: string;
  readonly takenAt: number;
}

/**
 * Judges a ping: a job is lost when two pings in a row, both 5 s or more after its take, leave it out.
 * One ping is never enough: they come from another process, retried and late.
 */
export function hearPing(before: Heard, held: readonly Held[], listed: ReadonlySet<string>, now: number) {
  const absent = new Set<string>();
  const lost: string[] = [];
  for (const job of held) {
    if (listed.has(job.id) || now - job.takenAt < limits.absentAfterMs) continue;
    if (before.absent.has(job.id)) lost.push(job.id);
    else absent.add(job.id);
  }
  return { heard: { absent } satisfies Heard, lost };
}
