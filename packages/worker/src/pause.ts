import { limits } from "./limits.js";

/** Waits, or returns early once the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal?.addEventListener("abort", finish);
  });
}

/** Growing, jittered pauses between tries, so that a fleet of workers does not retry in step. */
export class Backoff {
  #tries = 0;

  /** How long to wait before the next try, and at least as long as the server asked for. */
  nextMs(retryAfterMs = 0): number {
    const ceiling = Math.min(limits.pauseMinMs * 2 ** this.#tries, limits.pauseMaxMs);
    this.#tries = Math.min(this.#tries + 1, 16);
    return Math.max(ceiling * (0.5 + Math.random() / 2), retryAfterMs);
  }

  /** Starts over, after a successful try. */
  reset(): void {
    this.#tries = 0;
  }
}

/** Wakes waiters for "something changed"; it carries no data. */
export class Bell {
  #waiting: Array<() => void> = [];

  /** Resolves at the next ring. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  ring(): void {
    const woken = this.#waiting;
    this.#waiting = [];
    for (const wake of woken) wake();
  }
}
