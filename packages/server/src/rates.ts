import { limits } from "./limits/index.js";
import type { SharedStore } from "./store/index.js";

const bucketMs = 100;
const buckets = limits.rateWindowMs / bucketMs;

/** A sliding count over the last 10 s in steps of 100 ms, and the number in flight. */
class Window {
  readonly #counts = new Uint32Array(buckets);
  #sum = 0;
  #last = 0;
  inFlight = 0;
  usedAt = 0;

  #advance(now: number): void {
    const step = Math.floor(now / bucketMs);
    const passed = Math.min(step - this.#last, buckets);
    for (let n = 1; n <= passed; n++) {
      const at = (this.#last + n) % buckets;
      this.#sum -= this.#counts[at]!;
      this.#counts[at] = 0;
    }
    if (passed > 0) this.#last = step;
  }

  count(now: number): number {
    this.#advance(now);
    return this.#sum;
  }

  add(now: number): void {
    this.usedAt = now;
    this.#counts[this.#last % buckets]! += 1;
    this.#sum++;
    this.inFlight++;
  }

  /** How long until the oldest counted request leaves the window, in ms. */
  freeInMs(now: number): number {
    for (let n = buckets - 1; n >= 0; n--) {
      if (this.#counts[(this.#last - n + buckets) % buckets]! > 0) {
        return Math.max(bucketMs, (this.#last - n + buckets) * bucketMs - now + bucketMs);
      }
    }
    return bucketMs;
  }
}

export interface RateRow {
  /** Requests per 10 s. */
  readonly requests: number;
  readonly concurrent: number;
}

export type Admission =
  | { readonly ok: true; readonly limit: number; readonly release: () => void }
  | {
      readonly ok: false;
      readonly limit: number;
      readonly remaining: number;
      readonly retryAfterSeconds: number;
      /** The most that may be in flight, if only that limit has refused the request. */
      readonly concurrentMax?: number;
    };

/** The rate rows of the contract (Limits: Rate limits), per key owner, endpoint and operation. */
export const rateRows = {
  runsync: { requests: 2_000, concurrent: 400 },
  run: { requests: 1_000, concurrent: 200 },
  status: { requests: 2_000, concurrent: 400 },
  stream: { requests: 2_000, concurrent: 400 },
  cancel: { requests: 100, concurrent: 20 },
  "purge-queue": { requests: 2, concurrent: Number.POSITIVE_INFINITY },
  openai: { requests: 2_000, concurrent: 400 },
  requests: { requests: 10, concurrent: 2 },
} as const satisfies Record<string, RateRow>;
export type RatedOperation = keyof typeof rateRows;

/** Counts requests against the contract's limits. */
export class Rates {
  readonly #windows = new Map<string, Window>();

  /** `allowance`: running workers × requests per worker, which raises a limit but never lowers it (dynamic rule). */
  admit(who: string, operation: RatedOperation, allowance: number, now: number): Admission {
    const row: RateRow = rateRows[operation];
    const limit = Math.max(row.requests, allowance);
    const concurrent = row.concurrent * (limit / row.requests);
    const name = `${who}/${operation}`;
    let window = this.#windows.get(name);
    if (!window) {
      window = new Window();
      this.#windows.set(name, window);
      if (this.#windows.size > limits.rateCountsMax) this.#forget(now);
    }
    const count = window.count(now);
    if (count >= limit || window.inFlight >= concurrent) {
      const waitMs = count >= limit ? window.freeInMs(now) : 1_000;
      const retryAfterSeconds = Math.min(10, Math.max(1, Math.ceil(waitMs / 1_000)));
      const refused = { ok: false, limit, remaining: Math.max(0, limit - count), retryAfterSeconds } as const;
      return count >= limit ? refused : { ...refused, concurrentMax: Math.floor(concurrent) };
    }
    window.add(now);
    let released = false;
    return {
      ok: true,
      limit,
      release: () => {
        if (!released) window.inFlight--;
        released = true;
      },
    };
  }

  #forget(now: number): void {
    for (const [name, window] of this.#windows) {
      if (window.inFlight === 0 && now - window.usedAt > limits.rateWindowMs) this.#windows.delete(name);
    }
  }
}

/** What this server may admit under one name without asking again. */
interface Kept {
  left: number;
  untilAt: number;
  /** Requests waiting for a grant. */
  waiting: number;
  /** Resolves with the number granted. */
  asked: Promise<number> | undefined;
}

/** A limit shared by all servers: each takes a few requests at a time from the common window. */
export class Grants {
  readonly #grant: SharedStore["grant"];
  readonly #isAlone: () => boolean;
  readonly #kept = new Map<string, Kept>();

  constructor(grant: SharedStore["grant"], isAlone: () => boolean) {
    this.#grant = grant;
    this.#isAlone = isAlone;
  }

  /** Whether other servers share the limit. */
  get isShared(): boolean {
    return !this.#isAlone();
  }

  /**
   * Whether one more request may be admitted; `limit` is per 10 s. What a server has taken and not used is lost after 1
   * s: at most 2 %.
   */
  async admit(name: string, limit: number, now: number): Promise<boolean> {
    if (!this.isShared) return true;
    const kept = this.#kept.get(name) ?? { left: 0, untilAt: 0, waiting: 0, asked: undefined };
    this.#kept.set(name, kept);
    if (this.#kept.size > limits.rateCountsMax) this.#forget(now);
    kept.waiting++;
    try {
      while (kept.left <= 0 || now >= kept.untilAt) {
        kept.asked ??= this.#ask(kept, name, limit, now);
        if ((await kept.asked) <= 0) return false;
      }
      kept.left--;
      return true;
    } finally {
      kept.waiting--;
    }
  }

  async #ask(kept: Kept, name: string, limit: number, now: number): Promise<number> {
    try {
      const share = Math.max(1, Math.round(limit * limits.grantShare));
      kept.left = await this.#grant({ name, limit, count: Math.max(share, kept.waiting), now });
      kept.untilAt = now + limits.grantMs;
      return kept.left;
    } finally {
      kept.asked = undefined;
    }
  }

  #forget(now: number): void {
    for (const [name, { untilAt, waiting }] of this.#kept) if (waiting === 0 && untilAt < now) this.#kept.delete(name);
  }
}
