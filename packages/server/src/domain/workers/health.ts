import { limits } from "../../limits/index.js";

/** What `GET /ping` of a worker said: 200, 204, or anything else and nothing at all. */
export type PingAnswer = "ready" | "initialising" | "failed";

/** What a server knows of the health of one worker. */
export interface Health {
  /** Whether requests may go to it. */
  readonly isOpen: boolean;
  readonly wasReady: boolean;
  /** Answers in a row that were neither 200 nor 204. */
  readonly failures: number;
  /** Since when it has failed, once it was ready. */
  readonly failingSince: number | undefined;
}

/** Of a worker that was not asked yet. */
export const unknownHealth: Health = { isOpen: false, wasReady: false, failures: 0, failingSince: undefined };

/** Until it has answered 200 once nothing counts against it; then three failures in a row do. */
export function nextHealth(before: Health, answer: PingAnswer, now: number): Health {
  if (answer === "ready") return { isOpen: true, wasReady: true, failures: 0, failingSince: undefined };
  if (answer === "initialising") return { ...before, isOpen: false, failures: 0, failingSince: undefined };
  if (!before.wasReady) return before;
  const failures = before.failures + 1;
  const isOpen = before.isOpen && failures < limits.healthFailuresMax;
  return { isOpen, wasReady: true, failures, failingSince: before.failingSince ?? now };
}

/** How long until it is asked again. */
export function healthPauseMs({ isOpen, failures }: Health): number {
  return isOpen && failures === 0 ? limits.healthMs : limits.healthSoonMs;
}

/** When a worker that fails is replaced: one that has requests may be too busy to answer, until those are timed out. */
export function replaceAt({ failingSince, isOpen }: Health, isBusy: boolean, executionTimeoutMs: number) {
  if (failingSince === undefined || isOpen) return undefined;
  return failingSince + (isBusy ? Math.max(executionTimeoutMs, limits.healthPatienceMs) : limits.healthPatienceMs);
}
