/** An endpoint's counts, kept in the jobs' own commits. */
export interface Tally {
  readonly waiting: number;
  readonly waitingNormal: number;
  readonly running: number;
  readonly completed: number;
  readonly failed: number;
  readonly retried: number;
}

export interface TallyReader {
  tally(endpointNo: number): Promise<Tally>;
  /** Since when the oldest normal job waits. */
  oldestWaiting(endpointNo: number): Promise<number | undefined>;
  /** How many jobs each worker of an endpoint holds. */
  holdings(endpointNo: number): Promise<ReadonlyMap<number, number>>;
  /** Counts again from the jobs: for tests, and for repair. */
  recount(endpointNo: number): Promise<Tally>;
}
