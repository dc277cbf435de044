import { limits } from "../../limits/index.js";

/**
 * A worker's answer to `GET /ping`: 200, 204, or anything else, including none. `unreached`: it could not be asked, which
 * says nothing about it.
 */
export type PingAnswer = "ready" | "initialising" | "failed" | "unreached";

/** What a server knows of a worker's health. */
export interface Health {
  /** Whether requests may go to it. */
  readonly isOpen: boolean;
  readonly wasReady: boolean;
  /** Answers in a row that were neither 200 nor 204. */
  readonly failures: number;
  /** Since when it has been failing, after being ready. */
  readonly failingSince: number | undefined;
  /** Whether it could be asked. */
  readonly isReached: boolean;
}

/** The health of a worker that was not asked yet. */
export const unknownHealth: Health = {
  isOpen: false,
  wasReady: false,
  failures: 0,
  failingSince: undefined,
  isReached: true,
};

/** Takes in an answer. Before a worker's first 200 no failure counts against it; after it, three in a row shut it. */
export function nextHealth(before: Health, answer: PingAnswer, now: number): Health {
  if (answer === "ready") return { ...unknownHealth, isOpen: true, wasReady: true };
  if (answer !== "failed") return { ...unknownHealth, wasReady: before.wasReady, isReached: answer !== "unreached" };
  if (!before.wasReady) return unknownHealth;
  const failures = before.failures + 1;
  const isOpen = before.isOpen && failures < limits.healthFailuresMax;
  return { isOpen, wasReady: true, failures, failingSince: before.failingSince ?? now, isReached: true };
}

/** How long until the next ping, in ms. */
export function healthPauseMs({ isOpen, failures }: Health): number {
  return isOpen && failures === 0 ? limits.healthMs : limits.healthSoonMs;
}

/**
 * When a failing worker is replaced. A worker with requests may just be too busy to answer, so it has until they time
 * out.
 */
export function replaceAt({ failingSince, isOpen }: Health, isBusy: boolean, executionTimeoutMs: number) {
  if (failingSince === undefined || isOpen) return undefined;
  return failingSince + (isBusy ? Math.max(executionTimeoutMs, limits.healthPatienceMs) : limits.healthPatienceMs);
}
