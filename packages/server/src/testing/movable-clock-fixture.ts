import type { Clock, Signal } from "../clock.js";

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it. */
export class MovableClock implements Clock {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();
  /** Scheduled calls. Unlike sleeps, calls may be left when a test ends. */
  readonly #calls = new Set<Sleeper>();
  readonly #listeners: ((gapMs: number) => void)[] = [];
  /** The number of sleeps that have ended because time passed: it exposes busy loops. */
  wakes = 0;

  constructor(now = 1_790_000_000_000) {
    this.#now = now;
  }

  now = (): number => this.#now;
  wallNow = (): number => this.#now;

  sleep = (ms: number, signal?: Signal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const sleeper: Sleeper = { at: this.#now + Math.max(0, ms), wake: end };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", end);
    });

  after = (ms: number, call: () => void): void => {
    const coming: Sleeper = {
      at: this.#now + Math.max(0, ms),
      wake: () => {
        this.#calls.delete(coming);
        call();
      },
    };
    this.#calls.add(coming);
  };

  onGap = (listener: (gapMs: number) => void): void => void this.#listeners.push(listener);
  stop = (): void => {};

  /** The number of present sleepers: after a test there should be none. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  /** Moves on by `ms`, from sleeper to sleeper; after each wake `settle` lets everything run that needs no time. */
  async advance(ms: number, settle: () => Promise<void>): Promise<void> {
    const target = this.#now + ms;
    await settle();
    for (;;) {
      const next = Math.min(...[...this.#sleepers, ...this.#calls].map(({ at }) => at));
      if (next > target) break;
      this.#now = Math.max(this.#now, next);
      this.#wakeDue();
      await settle();
    }
    this.#now = target;
    await settle();
  }

  /** Simulates time during which the process did not run: it passes at once, and listeners for gaps are told first. */
  suspend(ms: number): void {
    this.#now += ms;
    for (const listener of this.#listeners) listener(ms);
    this.#wakeDue();
  }

  #wakeDue(): void {
    for (const call of [...this.#calls]) if (call.at <= this.#now) call.wake();
    for (const sleeper of [...this.#sleepers]) {
      if (sleeper.at > this.#now) continue;
      this.wakes++;
      sleeper.wake();
    }
  }
}
