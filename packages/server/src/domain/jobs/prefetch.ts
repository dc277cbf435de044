/**
 * Some workers prefetch: they ask for their next job while one runs, and begin it once the first one's result is
 * posted. Nothing in the protocol says so; their takes and pings show it.
 */

/** What this server knows about how a worker takes jobs. Not kept across restarts of the server. */
export interface Habits {
  /** Its last take: when, and whether it asked for a single job while saying that another is in progress. */
  readonly lastTake: { readonly at: number; readonly isBusy: boolean } | undefined;
  /** It has asked for several jobs, or named several in one ping: it begins every job at once. */
  readonly runsSeveral: boolean;
  /** A ping has left out the job it was just given, and named another one. */
  readonly prefetches: boolean;
  /** The job that had not begun at the last ping. */
  readonly ahead: string | undefined;
  /** Jobs that a ping has named, with the number of the start. */
  readonly begun: ReadonlyMap<string, number>;
}
export const noHabits: Habits = {
  lastTake: undefined,
  runsSeveral: false,
  prefetches: false,
  ahead: undefined,
  begun: new Map(),
};

interface Held {
  readonly id: string;
  readonly starts: number;
  readonly takenAt: number;
}

/** Notes a take: a worker that asks again has begun the jobs it was given before. */
export function hearTake(before: Habits, at: number, { count, isBusy }: { count: number; isBusy: boolean }): Habits {
  return { ...before, lastTake: { at, isBusy: isBusy && count === 1 }, runsSeveral: before.runsSeveral || count > 1 };
}

/** Whether the worker begins a job only after posting the result of the one before. */
export const isPrefetching = ({ prefetches, runsSeveral }: Habits): boolean => prefetches && !runsSeveral;

/**
 * The job that a worker may not have begun: its newest job, if its last take said that another job was in progress, and
 * the worker has since neither named the newest job in a ping nor asked again. Takes at other servers are unknown here.
 */
export function nextOf<Job extends Held>(
  { lastTake, runsSeveral, begun }: Habits,
  held: readonly Job[],
): Job | undefined {
  if (runsSeveral || lastTake?.isBusy === false) return undefined;
  const last = held.reduce<Job | undefined>((a, b) => (a === undefined || b.takenAt > a.takenAt ? b : a), undefined);
  if (last === undefined || begun.get(last.id) === last.starts) return undefined;
  return last.takenAt < (lastTake?.at ?? 0) ? undefined : last;
}

/**
 * Notes a ping. `ahead` is prefetched and waits for an earlier job that the ping names; `begun` are the jobs named for
 * the first time.
 */
export function hearList<Job extends Held>(before: Habits, held: readonly Job[], listed: ReadonlySet<string>) {
  const named = held.filter((job) => listed.has(job.id));
  const isKnown = (job: Job) => before.begun.get(job.id) === job.starts;
  const known = held.filter((job) => listed.has(job.id) || isKnown(job));
  const habits = {
    ...before,
    runsSeveral: before.runsSeveral || named.length > 1,
    begun: new Map(known.map(({ id, starts }) => [id, starts])),
  };
  const unnamed = held.filter((job) => !listed.has(job.id));
  const next = nextOf(habits, unnamed);
  const ahead = named.some((job) => next !== undefined && job.takenAt <= next.takenAt) ? next : undefined;
  return {
    habits: { ...habits, prefetches: habits.prefetches || ahead !== undefined, ahead: ahead?.id } satisfies Habits,
    ahead,
    begun: named.filter((job) => !isKnown(job)),
  };
}
