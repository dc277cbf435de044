/** What a run of many workers in a cluster of simulated nodes came to; times are milliseconds, unless they say otherwise. */
export interface ScaleRun {
  readonly workers: number;
  /** Set if there was trouble: how long a lost watch took to be whole again. */
  readonly watchMs?: number;
  /** Set if there was trouble: how many jobs there were, all of which have their result, and how many ran again. */
  readonly jobs?: { readonly all: number; readonly again: number };
}

/** Needs root. Throws if a worker has two pods, or a job is lost. */
export function runScale(options: {
  readonly endpoints: number;
  readonly workersOfEach: number;
  readonly isTroubled?: boolean;
  readonly say?: (text: string) => void;
}): Promise<ScaleRun>;
