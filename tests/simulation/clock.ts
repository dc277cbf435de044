import type { Clock, Signal } from "../../packages/server/src/clock.js";

interface Sleeper {
  at: number;
  readonly timeline: Timeline;
  readonly wake: () => void;
}

/** The only time of a simulation: it stands still until it is moved from timer to timer. */
export class SimulatedClock {
  #now = 1_790_000_000_000;
  readonly #sleepers = new Set<Sleeper>();

  now = (): number => this.#now;

  /** The time of one process: it can be held (the process is stopped), or be over (the process was killed). */
  timeline(): Timeline {
    return new Timeline(this, this.#sleepers);
  }

  /** When the next timer is due; undefined if nothing sleeps. */
  nextAt(): number | undefined {
    let next = Number.POSITIVE_INFINITY;
    for (const { at, timeline } of this.#sleepers) if (!timeline.isHeld && at < next) next = at;
    return next === Number.POSITIVE_INFINITY ? undefined : Math.max(next, this.#now);
  }

  /** Lets time pass without running any timer: timers that became due run at the next move. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Moves on to `at`, and wakes every sleeper that is due. */
  moveTo(at: number): void {
    this.#now = Math.max(this.#now, at);
    for (const sleeper of [...this.#sleepers]) {
      if (sleeper.at <= this.#now && !sleeper.timeline.isHeld && this.#sleepers.has(sleeper)) sleeper.wake();
    }
  }
}

/** One process's view of time. */
export class Timeline implements Clock {
  readonly #clock: SimulatedClock;
  readonly #sleepers: Set<Sleeper>;
  readonly #listeners: ((gapMs: number) => void)[] = [];
  isHeld = false;
  isOver = false;

  constructor(clock: SimulatedClock, sleepers: Set<Sleeper>) {
    this.#clock = clock;
    this.#sleepers = sleepers;
  }

  now = (): number => this.#clock.now();
  wallNow = this.now;

  sleep = (ms: number, signal?: Signal): Promise<void> =>
    new Promise((resolve) => {
      if (this.isOver) return;
      if (signal?.aborted) return resolve();
      const end = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        if (!this.isOver) resolve();
      };
      const sleeper: Sleeper = { at: this.now() + Math.ceil(Math.max(0, ms)), timeline: this, wake: end };
      this.#sleepers.add(sleeper);
      // A wake-up of a stopped process takes effect when the process continues.
      const wake = () => (this.isHeld ? void (sleeper.at = this.now()) : end());
      signal?.addEventListener("abort", wake);
    });

  after = (ms: number, call: () => void): void => void this.sleep(ms).then(call);

  onGap = (listener: (gapMs: number) => void): void => void this.#listeners.push(listener);

  /** Reports time during which this process did not run. */
  tellGap(gapMs: number): void {
    for (const listener of this.#listeners) listener(gapMs);
  }

  /** The process has ended: its sleeps never end. */
  stop = (): void => {
    this.isOver = true;
    for (const sleeper of [...this.#sleepers]) if (sleeper.timeline === this) this.#sleepers.delete(sleeper);
  };
}
