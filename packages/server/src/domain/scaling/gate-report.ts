/** What waits and runs at one server's gate for one endpoint. */
export interface GateLoad {
  readonly waiting: number;
  /** When the oldest waiting request arrived. */
  readonly oldestAt?: number;
  readonly inFlight: number;
  /**
   * The most that were in flight at a time in the last moments: the scaler's input, so that it does not react to gaps
   * between requests.
   */
  readonly peak: number;
  readonly completed: number;
  readonly failed: number;
  readonly retried: number;
}

/** What a server's gate reports to the others: loads by endpoint number, requests in flight by worker number. */
export interface GateReport {
  readonly endpoints: Readonly<Record<string, GateLoad>>;
  readonly workers: Readonly<Record<string, number>>;
  /** The numbers of the endpoints for which it has a healthy worker. */
  readonly open?: readonly number[];
}

export const noLoad: GateLoad = { waiting: 0, inFlight: 0, peak: 0, completed: 0, failed: 0, retried: 0 };

/** The sum of several servers' loads. */
export function addLoads(loads: readonly GateLoad[]): GateLoad {
  const oldest = loads.flatMap(({ oldestAt }) => (oldestAt === undefined ? [] : [oldestAt]));
  const sum = (count: (load: GateLoad) => number) => loads.reduce((total, load) => total + count(load), 0);
  return {
    waiting: sum((load) => load.waiting),
    ...(oldest.length > 0 ? { oldestAt: Math.min(...oldest) } : {}),
    inFlight: sum((load) => load.inFlight),
    peak: sum((load) => load.peak),
    completed: sum((load) => load.completed),
    failed: sum((load) => load.failed),
    retried: sum((load) => load.retried),
  };
}
