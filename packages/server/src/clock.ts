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

/**
 * A scheduled call. It is Node's own object, because a wrapper would be one more allocation per request. `unref()` lets
 * the process exit before the call, `refresh()` restarts its wait.
 */
export type Timer = NodeJS.Timeout;

/** Timers with a longer delay fire at once. */
const timerMsMax = 2 ** 31 - 1;

/**
 * The machine's time, for guards and durations of real I/O: sockets, files, statements, container engines, other
 * processes. It is not injected, because a test that moves its {@link Clock} by an hour must not time out every open
 * socket. Everything else (deadlines, leases, pauses of loops) takes its time from a {@link Clock}.
 */
export const realTime = {
  /** Milliseconds with fractions that never jump. Comparable only within one thread. */
  monotonicMs: (): number => performance.now(),
  /**
   * The machine's wall clock, which may be set at any moment. Only for times that somebody compares with another clock: a
   * webhook's signature, a container engine's log, the times of log lines, the database's clock.
   */
  wallMs: (): Millis => Date.now(),
  after: (ms: number, call: () => void): Timer => setTimeout(call, ms),
  every: (ms: number, call: () => void): Timer => setInterval(call, ms),
  /** Cancels a timer of either kind; does nothing if it is over. */
  cancel: (timer: Timer | undefined): void => clearTimeout(timer),
  /** A signal that aborts after `ms`. It does not keep the process alive. */
  abortAfter: (ms: number): AbortSignal => AbortSignal.timeout(ms),
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep: (ms: number, signal?: Signal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(wake);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const wake = setTimeout(done, Math.min(Math.max(0, ms), timerMsMax));
      signal?.addEventListener("abort", done);
    }),
} as const;

/** The service's time, which tests can move. `now()` never jumps, so deadlines survive a wall clock that does. */
export interface Clock {
  now(): Millis;
  /** The machine's wall clock, for times that callers name by their own clocks. It may jump. */
  wallNow(): Millis;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: Signal): Promise<void>;
  /** Calls `call` after `ms`. Does not keep the process alive. */
  after(ms: number, call: () => void): void;
  /**
   * Calls `listener` after a time in which this process did not run, because it was stopped or the machine suspended.
   */
  onGap(listener: (gapMs: number) => void): void;
  stop(): void;
}

/** Whether something settles within `ms`, even by failing. */
export async function isSettledWithin(clock: Clock, ms: number, doing: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  const done = doing.then(
    () => true,
    () => true,
  );
  const isInTime = await Promise.race([done, clock.sleep(ms, over.signal).then(() => false)]);
  over.abort();
  return isInTime;
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
  return Math.abs(now - realTime.wallMs()) <= limits.clockDoubtMsMax ? now : undefined;
}

/**
 * Continues the time of an earlier clock, if there was one since the machine booted; otherwise starts at wall time.
 * Then adds monotonic time, slewed by at most 1 s a minute towards wall time. Monotonic time stands still while the
 * machine is suspended; the uptime does not, so the difference is added at once.
 */
export function systemClock(bearing = ""): SystemClock {
  let offset = (goneOn(bearing) ?? realTime.wallMs()) - realTime.monotonicMs();
  let ahead = 0;
  let isFollowing = false;
  let asleep = uptime() * 1_000 - realTime.monotonicMs();
  let lastTick = realTime.monotonicMs();
  const listeners: ((gapMs: number) => void)[] = [];

  const tick = () => {
    const mono = realTime.monotonicMs();
    const stood = mono - lastTick - limits.clockTickMs;
    const suspended = uptime() * 1_000 - mono - asleep;
    if (suspended > limits.clockGapMs) {
      asleep += suspended;
      offset += suspended;
    }
    const slewMax = (limits.clockSlewPerMinuteMs * (mono - lastTick)) / 60_000;
    const error = realTime.wallMs() + ahead - (offset + mono);
    offset += Math.max(-slewMax, Math.min(slewMax, error));
    lastTick = mono;
    const gap = Math.max(stood, suspended);
    // listeners may ask for the time
    if (gap > limits.clockGapMs) for (const listener of listeners) listener(gap);
  };
  const timer = realTime.every(limits.clockTickMs, tick).unref();

  return {
    now: () => {
      // add a gap before returning a time, even for the first caller after the gap
      if (realTime.monotonicMs() - lastTick > limits.clockTickMs + limits.clockGapMs) tick();
      return Math.floor(offset + realTime.monotonicMs());
    },
    wallNow: realTime.wallMs,
    sleep: realTime.sleep,
    after: (ms, call) => void realTime.after(ms, call).unref(),
    follow(aheadMs) {
      // the first time, nothing has been measured by this clock yet
      if (!isFollowing) offset += aheadMs;
      isFollowing = true;
      ahead = aheadMs;
    },
    bearing() {
      const boot = bootId();
      return boot && `${Math.round(offset + realTime.monotonicMs())} ${Math.round(uptime() * 1_000)} ${boot}`;
    },
    onGap: (listener) => void listeners.push(listener),
    stop: () => realTime.cancel(timer),
  };
}
