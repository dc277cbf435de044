/** Where an owner's webhooks go: all URLs with one origin. */
export interface Receiver {
  readonly no: number;
  readonly id: string;
  readonly ownerNo: number;
  readonly origin: string;
  /** How many attempts in a row have failed, and since when. */
  readonly failures: number;
  readonly failingAt: number | undefined;
  /** Why the last failed attempt failed. */
  readonly error: string | undefined;
  readonly attemptedAt: number;
  /** Since when its deliveries are held back. */
  readonly pausedAt: number | undefined;
}

/** How an attempt went. */
export interface Heard {
  /** Used if the receiver is new. */
  readonly id: string;
  readonly ownerNo: number;
  readonly origin: string;
  readonly at: number;
  /** Absent: it succeeded. */
  readonly error: string | undefined;
}

export interface ReceiverStore {
  /** Notes an attempt; returns how many in a row have failed. An owner has at most `most` receivers: others are not noted. */
  note(heard: Heard, most: number): Promise<number>;
  /** An owner's receivers by origin, after one of them. */
  list(asked: { ownerNo: number; after?: string | undefined; limit: number }): Promise<Receiver[]>;
  find(id: string): Promise<Receiver | undefined>;
  /** Holds its deliveries back, or no longer if `pausedAt` is undefined. */
  pause(no: number, pausedAt: number | undefined): Promise<void>;
  /** All receivers whose deliveries are held back. */
  paused(): Promise<Receiver[]>;
  /** How many deliveries each of these holds. */
  holding(nos: readonly number[]): Promise<Map<number, number>>;
  /** Holds back a pending delivery. */
  hold(deliveryNo: number, receiverNo: number): Promise<void>;
  /** Makes deliveries due again, oldest first, whose receivers are not paused any more; returns how many. */
  release(now: number, most: number): Promise<number>;
  /** Forgets receivers that were not called since, and hold nothing back. */
  forget(before: number, most: number): Promise<number>;
}
