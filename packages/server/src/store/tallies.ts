/** An endpoint's counts, updated in the jobs' own commits. */
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
  /** The number of jobs that wait at these endpoints together. */
  waiting(endpointNos: readonly number[]): Promise<number>;
  /** Since when the oldest job with normal priority has been waiting. */
  oldestWaiting(endpointNo: number): Promise<number | undefined>;
  /** The number of jobs that each worker of an endpoint holds. */
  holdings(endpointNo: number): Promise<ReadonlyMap<number, number>>;
  /** Recounts from the jobs, for tests and repair. */
  recount(endpointNo: number): Promise<Tally>;
}
