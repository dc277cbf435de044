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

/** An owner, and the scheme, host and port of a URL that webhooks of theirs go to. */
export interface Target {
  readonly ownerNo: number;
  readonly origin: string;
}

/** How an attempt went. */
export interface Heard extends Target {
  /** Used if the receiver is new. */
  readonly id: string;
  readonly at: number;
  /** Absent: it succeeded. */
  readonly error: string | undefined;
}

/** Deliveries, and the size of their bodies in bytes. */
export interface HeldSum {
  readonly count: number;
  readonly bytes: number;
}

/** A delivery that a receiver is to hold back. */
export interface Held {
  readonly receiverNo: number;
  readonly deliveryNo: number;
  readonly bytes: number;
}

export type ReceiverState = "healthy" | "failing" | "paused";

export interface ReceiversAsked {
  readonly ownerNo: number;
  /** An origin: only those after it. */
  readonly after?: string | undefined;
  readonly state?: ReceiverState | undefined;
  /** How many failures in a row make a receiver a failing one. */
  readonly failing: number;
  readonly limit: number;
}

export interface ReceiverStore {
  /** Notes an attempt; returns how many in a row have failed. An owner has at most `most` receivers: others are not noted. */
  note(heard: Heard, most: number): Promise<number>;
  /** An owner's receivers by origin. */
  list(asked: ReceiversAsked): Promise<Receiver[]>;
  find(id: string): Promise<Receiver | undefined>;
  /** Holds its deliveries back, or no longer if `pausedAt` is undefined. */
  pause(no: number, pausedAt: number | undefined): Promise<void>;
  /** Those of these receivers whose deliveries are held back. */
  paused(targets: readonly Target[]): Promise<Receiver[]>;
  /** How many deliveries each of these holds. */
  holding(nos: readonly number[]): Promise<Map<number, number>>;
  /** What all receivers of each of these owners hold; an owner whose receivers hold nothing is absent. */
  holdingOf(ownerNos: readonly number[]): Promise<Map<number, HeldSum>>;
  /** Holds back those of these deliveries that are pending. */
  hold(held: readonly Held[]): Promise<void>;
  /**
   * Makes some deliveries due again whose receiver was resumed, the oldest first. False if no such receiver is left; else
   * there may be more.
   */
  release(now: number, most: number): Promise<boolean>;
  /** Forgets receivers that were not called since, and hold nothing back. */
  forget(before: number, most: number): Promise<number>;
}
