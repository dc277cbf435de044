/**
 * Some workers ask for their next job while one runs, and begin it when the result of the first is posted: they prefetch.
 * Nothing in the protocol says so; their takes and pings show it.
 */

/** What one server knows of how a worker takes its jobs: begun anew at the server's start. */
export interface Habits {
  /** Its last take: when it came, and whether it asked for a single job and said that another is in progress. */
  readonly lastTake: { readonly at: number; readonly isBusy: boolean } | undefined;
  /** It has asked for several jobs, or named several in one ping: it begins what it is handed at once. */
  readonly runsSeveral: boolean;
  /** A ping has left out what it was just handed, and named another job. */
  readonly prefetches: boolean;
  /** The job that the last ping showed not to have begun. */
  readonly ahead: string | undefined;
  /** Jobs that a ping has named, with the start it was about. */
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

/** Hears a take: whoever asks again has begun what it was handed before. */
export function hearTake(before: Habits, at: number, { count, isBusy }: { count: number; isBusy: boolean }): Habits {
  return { ...before, lastTake: { at, isBusy: isBusy && count === 1 }, runsSeveral: before.runsSeveral || count > 1 };
}

/** Whether the worker begins a job only once it has posted the result of the one before. */
export const isPrefetching = ({ prefetches, runsSeveral }: Habits): boolean => prefetches && !runsSeveral;

/**
 * The job that a worker may not have begun: the last it was handed, by a take that said that another is in progress. It has
 * neither named that job in a ping since, nor asked again. Takes that another server heard are unknown here.
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

/** Hears a ping. `ahead` waits for an earlier job that the ping names; `begun` are the jobs that it names for the first time. */
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
