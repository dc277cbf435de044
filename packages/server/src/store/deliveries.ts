export interface Delivery {
  readonly no: number;
  readonly jobNo: number;
  readonly jobId: string;
  readonly endpointNo: number;
  readonly webhookId: string;
  readonly url: string;
  readonly tries: number;
  readonly state: "pending" | "delivered" | "failed";
  readonly nextAt: number | undefined;
}

export interface Attempt {
  readonly at: number;
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly durationMs: number;
}

/** A delivery whose time has come, and about how many bytes its body has. */
export interface DueDelivery extends Delivery {
  readonly bytes: number;
}

export interface DeliveryStore {
  /** Pending deliveries whose time has come, in order, those after `after` only. */
  due(now: number, limit: number, after?: Pick<Delivery, "no" | "nextAt">): Promise<DueDelivery[]>;
  nextDue(): Promise<number | undefined>;
  /** Adds an attempt to a delivery, and says what becomes of it. The same attempt may be recorded again: it counts once. */
  record(deliveryNo: number, attempt: Attempt, outcome: { state: Delivery["state"]; nextAt?: number }): Promise<void>;
  list(
    endpointNos: readonly number[],
    jobId: string | undefined,
    limit: number,
  ): Promise<(Delivery & { attempts: Attempt[] })[]>;
  /** Deliveries and their attempts that ended before `before`. */
  forget(before: number): Promise<void>;
}
