import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import { limits } from "./limits/index.js";

/** Milliseconds since 1970, as this clock counts them. */
export type Millis = number;

/** What ends a wait before its time: an AbortSignal, or a {@link PlainSignal}. */
export interface Signal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A signal and its switch in one. Thousands of polls are held: an AbortController costs ten times the time and memory. */
export class PlainSignal implements Signal {
  readonly #listeners = new Set<() => void>();
  #aborted = false;

  get aborted(): boolean {
    return this.#aborted;
  }
  abort(): void {
    this.#aborted = true;
    // one that is taken back meanwhile is not told
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

/** The one door to time. `now()` never jumps: deadlines survive a wall clock that does. */
export interface Clock {
  now(): Millis;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: Signal): Promise<void>;
  /** Calls `listener` after time in which this process did not run (stopped, or the machine suspended). */
  onGap(listener: (gapMs: number) => void): void;
  stop(): void;
}

export interface SystemClock extends Clock {
  /** From now on the wall is `aheadMs` ahead of this machine's: another machine's clock is followed. */
  follow(aheadMs: number): void;
  /** What the next clock on this machine goes on from, as text; undefined where the machine's starts cannot be told apart. */
  bearing(): string | undefined;
}

/** Which start of the machine this is. */
function bootId(): string | undefined {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Our time by a bearing of the same start of the machine; undefined where the wall is to be believed. */
function goneOn(bearing: string): Millis | undefined {
  const [at, upMs, boot] = bearing.split(" ");
  const passed = uptime() * 1_000 - Number(upMs);
  if (boot === undefined || boot !== bootId() || !(passed >= 0)) return undefined;
  const now = Number(at) + passed;
  return Math.abs(now - Date.now()) <= limits.clockDoubtMsMax ? now : undefined;
}

/**
 * Time as a clock before this one has left it, where there was one since the machine started, else wall time at start; plus
 * monotonic time, slewed at most 1 s a minute towards the wall.
 * `performance.now()` stands still while the machine is suspended; the uptime does not, so the difference is taken in at once.
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
      // whoever asks first after a gap must not judge by it
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
      // the first time is before anything was measured by this clock
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
