import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import { limits } from "./limits/index.js";

/** Milliseconds since 1970 by this clock. */
export type Millis = number;

/** Ends a wait early: an AbortSignal or a {@link PlainSignal}. */
export interface Signal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * A signal and its controller in one. Thousands of polls hold one, and an AbortController costs ten times the time and
 * memory.
 */
export class PlainSignal implements Signal {
  readonly #listeners = new Set<() => void>();
  #aborted = false;

  get aborted(): boolean {
    return this.#aborted;
  }
  abort(): void {
    this.#aborted = true;
    // a listener removed meanwhile is not called
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.#aborted) this.#listeners.add(listener);
  }
  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }
}

/** The only access to time. `now()` never jumps, so deadlines survive a wall clock that does. */
export interface Clock {
  now(): Millis;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: Signal): Promise<void>;
  /**
   * Calls `listener` after a time in which this process did not run, because it was stopped or the machine suspended.
   */
  onGap(listener: (gapMs: number) => void): void;
  stop(): void;
}

export interface SystemClock extends Clock {
  /** From now on follows another machine's clock, which is `aheadMs` ahead of this machine's. */
  follow(aheadMs: number): void;
  /**
   * The state from which the next clock on this machine continues, as text; undefined if boots of the machine cannot be
   * told apart.
   */
  bearing(): string | undefined;
}

/** Identifies the machine's current boot. */
function bootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Our time derived from a bearing of the same boot; undefined if the wall clock should be used instead. */
function goneOn(bearing: string): Millis | undefined {
  const [at, upMs, boot] = bearing.split(" ");
  const passed = uptime() * 1_000 - Number(upMs);
  if (boot === undefined || boot !== bootId() || !(passed >= 0)) return undefined;
  const now = Number(at) + passed;
  return Math.abs(now - Date.now()) <= limits.clockDoubtMsMax ? now : undefined;
}

/**
 * Continues the time of an earlier clock, if there was one since the machine booted; otherwise starts at wall time.
 * Then adds monotonic time, slewed by at most 1 s a minute towards wall time. `performance.now()` stands still while
 * the machine is suspended; the uptime does not, so the difference is added at once.
 */
export function systemClock(bearing = ""): SystemClock {
  let offset = (goneOn(bearing) ?? Date.now()) - performance.now();
  let ahead = 0;
  let isFollowing = false;
  let asleep = uptime() * 1_000 - performance.now();
  let lastTick = performance.now();
  const listeners: ((gapMs: number) => void)[] = [];

  const tick = () => {
    const mono = performance.now();
    const stood = mono - lastTick - limits.clockTickMs;
    const suspended = uptime() * 1_000 - mono - asleep;
    if (suspended > limits.clockGapMs) {
      asleep += suspended;
      offset += suspended;
    }
    const slewMax = (limits.clockSlewPerMinuteMs * (mono - lastTick)) / 60_000;
    const error = Date.now() + ahead - (offset + mono);
    offset += Math.max(-slewMax, Math.min(slewMax, error));
    lastTick = mono;
    const gap = Math.max(stood, suspended);
    // listeners may ask for the time
    if (gap > limits.clockGapMs) for (const listener of listeners) listener(gap);
  };
  const timer = setInterval(tick, limits.clockTickMs);
  timer.unref();

  return {
    now: () => {
      // nobody must judge by the time of a gap, not even the first caller after it
      if (performance.now() - lastTick > limits.clockTickMs + limits.clockGapMs) tick();
      return Math.floor(offset + performance.now());
    },
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const done = () => {
          clearTimeout(wake);
          signal?.removeEventListener("abort", done);
          resolve();
        };
        // a timer beyond 2^31 ms fires at once
        const wake = setTimeout(done, Math.min(Math.max(0, ms), 2_147_483_647));
        signal?.addEventListener("abort", done);
      }),
    follow(aheadMs) {
      // the first time, nothing has been measured by this clock yet
      if (!isFollowing) offset += aheadMs;
      isFollowing = true;
      ahead = aheadMs;
    },
    bearing() {
      const boot = bootId();
      return boot && `${Math.round(offset + performance.now())} ${Math.round(uptime() * 1_000)} ${boot}`;
    },
    onGap: (listener) => void listeners.push(listener),
    stop: () => clearInterval(timer),
  };
}
