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
  /** The receiver that holds it back. */
  readonly heldBy: number | undefined;
}

/** A delivery's state as its owner sees it: one that a paused receiver holds back is pending, but not due. */
export type DeliveryState = Delivery["state"] | "held";

export interface Attempt {
  readonly at: number;
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly durationMs: number;
  /** The beginning of what the receiver answered, as plain text. */
  readonly reply?: string | undefined;
}

export interface DeliveryWithAttempts extends Delivery {
  readonly attempts: readonly Attempt[];
}

/** A delivery that is due, with the approximate size of its body in bytes. */
export interface DueDelivery extends Delivery {
  readonly bytes: number;
}

export interface HeadsQuery {
  readonly now: number;
  readonly afterEndpointNo: number;
  readonly endpoints: number;
}

/** An attempt of a delivery, and the delivery's new state. */
export interface AttemptMade {
  readonly deliveryNo: number;
  readonly attempt: Attempt;
  readonly outcome: { readonly state: Delivery["state"]; readonly nextAt?: number };
}

/** The newest deliveries of some endpoints: of one job of theirs, in one state, made before another one. */
export interface DeliveryQuery {
  readonly endpointNos: readonly number[];
  readonly jobId?: string | undefined;
  readonly state?: DeliveryState | undefined;
  readonly beforeNo?: number | undefined;
  readonly limit: number;
}

export interface DeliveryStore {
  /** Pending deliveries that are due, in order, starting after `after`. */
  due(batch: {
    now: number;
    limit: number;
    after?: Pick<Delivery, "no" | "nextAt"> | undefined;
  }): Promise<DueDelivery[]>;
  /**
   * The first due deliveries of each of some endpoints, in the order of their numbers, after `afterEndpointNo`;
   * `lookedTo` is the last of these endpoints, undefined if there are no more.
   */
  heads(asked: HeadsQuery): Promise<{ due: DueDelivery[]; lookedTo: number | undefined }>;
  nextDue(): Promise<number | undefined>;
  /** Recording the same attempt twice counts once. */
  record(made: AttemptMade): Promise<void>;
  list(query: DeliveryQuery): Promise<DeliveryWithAttempts[]>;
  find(webhookId: string): Promise<DeliveryWithAttempts | undefined>;
  /**
   * Makes a delivery that has ended due again. False if it has not ended or has had `triesMax` attempts, if its job is
   * gone or not over, or if the job has a newer delivery; then no entry of the audit log is stored either.
   */
  redeliver(again: { deliveryNo: number; triesMax: number; now: number }): Promise<boolean>;
  /** Deletes deliveries that ended before `before`, with their attempts. */
  forget(before: number, most: number): Promise<number>;
}
