import type { Endpoint } from "../endpoints/endpoint.js";
import { type CrashPause, startFailure } from "../jobs/wait-reason.js";
import type { WorkerState } from "../workers/worker.js";

export interface GateFacts {
  readonly endpoint: Pick<Endpoint, "settings" | "failedStarts" | "verdict">;
  readonly states: readonly WorkerState[];
  readonly pause: CrashPause;
  /** What is being done to start a worker, if it takes long. */
  readonly doing?: string | undefined;
  /** Whether its cluster has no room for it. */
  readonly isFull?: boolean | undefined;
  /** Why a worker that was asked for has no place yet. */
  readonly throttled?: string | undefined;
  /** Whether all ready workers are on hosts that this server cannot reach. */
  readonly isOutOfReach?: boolean;
  /** Why no host can run its workers, if none can. */
  readonly obstacle?: string | undefined;
}

/** Why no worker takes a request. `isHopeless`: waiting would not help. */
export function gateReason(facts: GateFacts): { sentence: string; isHopeless: boolean } {
  const { endpoint, states, doing, isFull, throttled, isOutOfReach, obstacle } = facts;
  const { settings } = endpoint;
  const say = (sentence: string, isHopeless = false) => ({ sentence, isHopeless });
  const count = (state: WorkerState) => states.filter((each) => each === state).length;
  if (settings.workersMax === 0) return say("workersMax is 0: raise it to let workers start.", true);
  if (obstacle !== undefined) return say(obstacle, true);
  const ready = count("idle") + count("running");
  const failure = ready === 0 ? startFailure(facts, "was ready") : undefined;
  if (failure) return say(failure.detail);
  if (ready > 0 && isOutOfReach)
    return say(
      "Its workers are on other hosts, at addresses that this server cannot reach: send the request to their server.",
    );
  if (ready > 0) return say("None of the workers answers GET /ping with 200.");
  if (count("starting") > 0 && isFull) return say(`A worker has no place yet: ${doing}.`);
  if (count("starting") > 0)
    return say(
      `A worker is starting ${doing === undefined ? "and has not answered GET /ping with 200 yet" : `(${doing})`}.`,
    );
  if (throttled !== undefined) return say(throttled);
  if (states.length >= settings.workersMax)
    return say(`The existing workers are still stopping, and workersMax is ${settings.workersMax}.`);
  return say("No worker was started in time.");
}
