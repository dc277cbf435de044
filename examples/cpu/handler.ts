import { setImmediate as nextTurn } from "node:timers/promises";
import type { Job } from "@millrace/worker";

interface Input {
  /** Count the primes below this number. */
  limit?: number;
}

const stepsPerTurn = 100_000;

/** Counts primes by trial division: slow on purpose, so that it keeps one processor core busy. */
export default async function countPrimes({ limit = 1_000_000 }: Input, job: Job) {
  const startedAt = performance.now();
  let primes = 0;
  for (let candidate = 2; candidate < limit; candidate++) {
    if (isPrime(candidate)) primes++;
    if (candidate % stepsPerTurn === 0) {
      // A handler that never yields to the event loop can't be stopped, and shows no progress.
      await nextTurn();
      job.signal.throwIfAborted();
      void job.progress({ checked: candidate, primes });
    }
  }
  return { primes, milliseconds: Math.round(performance.now() - startedAt) };
}

function isPrime(number: number): boolean {
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}
