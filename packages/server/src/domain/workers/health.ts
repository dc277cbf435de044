import { limits } from "../../limits/index.js";

/** A worker's answer to `GET /ping`: 200, 204, or anything else, including none. */
export type PingAnswer = "ready" | "initialising" | "failed" | Unreached;

/** It could not be asked, which says nothing about it. */
export interface Unreached {
  readonly unreached: string;
  /** For operators. */
  readonly detail: string;
}

/** What a server knows of a worker's health. */
export interface Health {
  /** Whether requests may go to it. */
  readonly isOpen: boolean;
  readonly wasReady: boolean;
  /** Answers in a row that were neither 200 nor 204. */
  readonly failures: number;
  /** Since when it has been failing, after being ready; times when it could not be asked do not count. */
  readonly failingSince: number | undefined;
  /** When it last answered, or could not be asked. */
  readonly at: number | undefined;
  /** Why it could not be asked, and how often in a row. */
  readonly unreached: { readonly why: string; readonly detail: string; readonly times: number } | undefined;
}

/** The health of a worker that was not asked yet. */
export const unknownHealth: Health = {
  isOpen: false,
  wasReady: false,
  failures: 0,
  failingSince: undefined,
  at: undefined,
  unreached: undefined,
};

/** Takes in an answer. Before a worker's first 200 no failure counts against it; after it, three in a row shut it. */
export function nextHealth(before: Health, answer: PingAnswer, now: number): Health {
  if (typeof answer === "object") return unreachedHealth(before, answer, now);
  const known = { ...before, at: now, unreached: undefined };
  if (answer === "ready") return { ...known, isOpen: true, wasReady: true, failures: 0, failingSince: undefined };
  if (answer === "initialising") return { ...known, isOpen: false, failures: 0, failingSince: undefined };
  if (!before.wasReady) return known;
  const failures = before.failures + 1;
  const isOpen = before.isOpen && failures < limits.healthFailuresMax;
  return { ...known, isOpen, failures, failingSince: before.failingSince ?? now };
}

/** Whether a worker could not be asked so often that nothing is sent to it. */
const isCutOff = (unreached: Health["unreached"]): boolean => (unreached?.times ?? 0) >= limits.healthFailuresMax;

function unreachedHealth(before: Health, { unreached: why, detail }: Unreached, now: number): Health {
  const unreached = { why, detail, times: (before.unreached?.times ?? 0) + 1 };
  const { failingSince, at = now } = before;
  return {
    ...before,
    isOpen: before.isOpen && !isCutOff(unreached),
    failingSince: failingSince === undefined ? undefined : failingSince + now - at,
    at: now,
    unreached,
  };
}

const noAnswer = "it does not answer GET /ping with 200";
const noWay = "it cannot be reached: ";

/** Why nothing may be sent to a worker that was ready, or that cannot be asked; undefined if that is as it should be. */
export function troubleOf({ isOpen, wasReady, unreached }: Health): string | undefined {
  if (isOpen) return undefined;
  if (unreached) return isCutOff(unreached) ? `${noWay}${unreached.why}` : undefined;
  return wasReady ? noAnswer : undefined;
}

/** Whether a worker's trouble is one of {@link troubleOf}, rather than something else that is wrong with it. */
export const isHealthTrouble = (why: string): boolean => why === noAnswer || why.startsWith(noWay);

/** How long until the next ping, in ms. */
export function healthPauseMs({ isOpen, failures, unreached }: Health): number {
  // what cannot be reached may be busy
  if (isCutOff(unreached)) return limits.healthMs;
  return isOpen && failures === 0 ? limits.healthMs : limits.healthSoonMs;
}

/**
 * When a failing worker is replaced. A worker with requests may just be too busy to answer, so it has until they time
 * out.
 */
export function replaceAt({ failingSince, isOpen, unreached }: Health, isBusy: boolean, executionTimeoutMs: number) {
  if (failingSince === undefined || isOpen || unreached) return undefined;
  return failingSince + (isBusy ? Math.max(executionTimeoutMs, limits.healthPatienceMs) : limits.healthPatienceMs);
}
