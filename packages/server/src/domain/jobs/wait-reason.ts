import { limits } from "../../limits/index.js";
import type { Endpoint } from "../endpoints/endpoint.js";
import { isBarrier } from "../usage/barrier.js";
import type { WorkerState } from "../workers/worker.js";

export type WaitReason =
  | "no_worker"
  | "starting"
  | "workers_busy"
  | "no_capacity"
  | "quota_reached"
  | "location"
  | "workers_max_reached"
  | "workers_max_zero"
  | "low_priority"
  | "start_failed"
  | "crash_looping";

/** The pause before the next start, after a failed start. */
export interface CrashPause {
  readonly leftMs: number;
  /** Whether its handler is in a directory, where a change ends the pause. */
  readonly isWatched: boolean;
}

export interface WaitFacts {
  readonly lowPriority: boolean;
  readonly endpoint: Pick<Endpoint, "settings" | "failedStarts" | "verdict">;
  readonly states: readonly WorkerState[];
  /** How many of the idle ones still run a job that was stopped: they take none before its handler ends. */
  readonly stillStopping?: number;
  readonly pause: CrashPause;
  /** What is being done to start a worker, if it takes long. */
  readonly doing?: string | undefined;
  /** Whether its cluster has no room for it. */
  readonly isFull?: boolean | undefined;
  /** Why a worker that was asked for has no place yet. */
  readonly throttled?: string | undefined;
  /** Why no host can run the endpoint's workers, if none can. */
  readonly obstacle?: { readonly reason: "no_capacity" | "location"; readonly detail: string } | undefined;
}

/** Describes workers that ended before they were of any use; undefined if none did. */
export function startFailure(
  { endpoint, states, pause }: Pick<WaitFacts, "endpoint" | "states" | "pause">,
  before: string,
) {
  const { failedStarts, verdict } = endpoint;
  if (failedStarts === 0) return undefined;
  const next = states.includes("starting") ? "the next one is starting" : nextStart(pause);
  const why = `${next}. Why the last one ended: ${verdict ?? `it ended before it ${before}`}`;
  return failedStarts >= limits.crashLoopStarts
    ? {
        reason: "crash_looping" as const,
        detail: `The last ${failedStarts} workers ended at their start; ${why}`,
      }
    : { reason: "start_failed" as const, detail: `The last worker failed to start; ${why}` };
}

/** When the next worker starts, and what a user can do to start it at once. */
function nextStart({ leftMs, isWatched }: CrashPause): string {
  if (leftMs <= 0) return "the next one is about to be started";
  const save = isWatched
    ? "a change in the handler's folder, or a save of the endpoint or its template,"
    : "a save of the endpoint or its template";
  return `the next one is started in ${Math.ceil(leftMs / 1_000)} s, and ${save} starts it at once`;
}

/** What is known of workers whose handlers go on after their job was cancelled, has timed out or was deleted. */
const stoppingNote = (count: number): string =>
  `${count} of them still ${count === 1 ? "runs" : "run"} a handler whose job was stopped; ` +
  `a worker that has not stopped it within ${limits.stopPatienceMs / 1_000} s is replaced.`;

/** Why a job is still waiting, as a code and as a sentence that a user can act on. */
export function waitReason(facts: WaitFacts): { waitReason: WaitReason; waitDetail: string } {
  const { settings } = facts.endpoint;
  const say = (reason: WaitReason, detail: string) => ({ waitReason: reason, waitDetail: detail });
  const count = (state: WorkerState) => facts.states.filter((each) => each === state).length;
  const ready = count("idle") + count("running");
  if (settings.workersMax === 0) return say("workers_max_zero", "workersMax is 0: raise it to let workers start.");
  const failure = ready === 0 ? startFailure(facts, "asked for a job") : undefined;
  if (failure) return say(failure.reason, failure.detail);
  if (facts.obstacle) return say(facts.obstacle.reason, facts.obstacle.detail);
  const unplaced = facts.throttled !== undefined && isBarrier(facts.throttled) ? "quota_reached" : "no_capacity";
  if (facts.throttled !== undefined && ready + count("starting") === 0) return say(unplaced, facts.throttled);
  const { stillStopping = 0 } = facts;
  if (count("idle") > stillStopping) return say("workers_busy", "A worker is free and about to take this job.");
  if (ready > 0) {
    if (facts.throttled !== undefined) return say(unplaced, `All workers are busy. ${facts.throttled}`);
    if (facts.isFull) return say("no_capacity", `All workers are busy, and another has no place yet: ${facts.doing}.`);
    const stopping = stillStopping > 0 ? ` ${stoppingNote(stillStopping)}` : "";
    return facts.states.length >= settings.workersMax
      ? say(
          "workers_max_reached",
          `All workers are busy and workersMax (${settings.workersMax}) is reached.${stopping}`,
        )
      : say("workers_busy", `All workers are busy; more are started when the scaler's target is passed.${stopping}`);
  }
  if (count("starting") > 0 && facts.isFull) return say("no_capacity", `A worker has no place yet: ${facts.doing}.`);
  if (count("starting") > 0) {
    const doing = facts.doing === undefined ? "and has not asked for a job yet" : `(${facts.doing})`;
    return say("starting", `A worker is starting ${doing}.`);
  }
  if (facts.lowPriority) return say("low_priority", "A lowPriority job waits for a worker that other jobs start.");
  if (facts.states.length >= settings.workersMax) {
    return say(
      "workers_max_reached",
      `The existing workers are still stopping, and workersMax is ${settings.workersMax}.`,
    );
  }
  return say("no_worker", "There is no worker yet; one is about to be started.");
}
