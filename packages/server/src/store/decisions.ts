/** One scaling decision, for as long as it stays the same. */
export interface Decision {
  readonly fromAt: number;
  readonly untilAt: number;
  readonly times: number;
  readonly inputs: string;
  readonly outcome: string;
  readonly reason: string;
}

export interface DecisionStore {
  /** Appends a decision, and closes the previous one (`ended`), if there is one. */
  record(made: {
    readonly endpointNo: number;
    readonly decision: { at: number; inputs: string; outcome: string; reason: string };
    readonly ended?: { untilAt: number; times: number } | undefined;
  }): Promise<void>;
  list(endpointNo: number, limit: number): Promise<Decision[]>;
  forget(before: number, most: number): Promise<number>;
}
