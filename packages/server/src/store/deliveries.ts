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

/** A delivery that is due, with the approximate size of its body in bytes. */
export interface DueDelivery extends Delivery {
  readonly bytes: number;
}

export interface DeliveryStore {
  /** Pending deliveries that are due, in order, starting after `after`. */
  due(now: number, limit: number, after?: Pick<Delivery, "no" | "nextAt">): Promise<DueDelivery[]>;
  nextDue(): Promise<number | undefined>;
  /** Records an attempt of a delivery and the delivery's new state. Recording the same attempt twice counts once. */
  record(deliveryNo: number, attempt: Attempt, outcome: { state: Delivery["state"]; nextAt?: number }): Promise<void>;
  list(
    endpointNos: readonly number[],
    jobId: string | undefined,
    limit: number,
  ): Promise<(Delivery & { attempts: Attempt[] })[]>;
  /** Deletes deliveries that ended before `before`, with their attempts. */
  forget(before: number): Promise<void>;
}
