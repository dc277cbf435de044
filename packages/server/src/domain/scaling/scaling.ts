import { limits } from "../../limits/index.js";
import { earliest } from "../earliest.js";
import { type Leaving, leave } from "../workers/leaving.js";
import { type Desire, isReady, isUsable, type ScaleInputs, type WorkerView } from "./scale-inputs.js";

/**
 * How many usable workers an endpoint should have now. While one version replaces another, an old worker and its
 * successor count as one, and busy workers are replaced even if nothing waits.
 * QUEUE_DELAY with scalerValue 4, one busy worker of one slot, and three jobs of which the oldest has waited 5 s: 1 + 3
 * = 4.
 */
export function desiredWorkers(inputs: ScaleInputs): Desire {
  const { settings, demand, now, version } = inputs;
  const usable = inputs.workers.filter(isUsable);
  const mine = usable.filter((worker) => worker.version === version);
  const old = usable.filter((worker) => worker.version !== version && isReady(worker));
  const standing = Math.max(mine.length, old.length);
  // an idle worker is about to take a job as well
  const coming = old.length > 0 ? 0 : mine.filter(({ state }) => state !== "running").length;
  const busy = usable.filter(({ state }) => state === "running").length;
  const bounded = (want: number, reason: string, lookAt?: number): Desire => {
    if (want > settings.workersMax)
      return { want: settings.workersMax, reason: `${reason}; workersMax is ${settings.workersMax}`, lookAt };
    if (want < settings.workersMin)
      return { want: settings.workersMin, reason: `workersMin is ${settings.workersMin}`, lookAt };
    return { want, reason, lookAt };
  };
  if (settings.scalerType === "REQUEST_COUNT") {
    const count = demand.waitingNormal + demand.running;
    const want = Math.ceil(count / settings.scalerValue);
    // without the count: a decision is recorded whenever its reason differs
    return bounded(want, `work for ${want} at ${settings.scalerValue} each`);
  }
  if (demand.waitingNormal === 0) {
    return old.length > 0 ? bounded(busy, "busy workers are replaced") : bounded(0, "nothing waits");
  }
  if (standing === 0) return bounded(1, "a job waits and there is no worker");
  const lateAt = (demand.oldestAt ?? now) + settings.scalerValue * 1_000;
  if (now < lateAt) return bounded(standing, `no job has waited ${settings.scalerValue} s yet`, lateAt);
  const needed = Math.ceil(demand.waitingNormal / inputs.slots);
  return bounded(
    standing - coming + Math.max(coming, needed),
    `a job has waited over ${settings.scalerValue} s, ${demand.waitingNormal} wait, ${inputs.slots} for each worker`,
  );
}

/** How long to wait after the last failed start before the next: 1 s, 2 s, 4 s … 5 min. */
export const crashPauseMs = (failedStarts: number): number =>
  failedStarts === 0 ? 0 : Math.min(limits.crashPauseMsMin * 2 ** (failedStarts - 1), limits.crashPauseMsMax);

/** What to do to give an endpoint the workers it should have. */
export interface Plan {
  readonly start: number;
  /** Paused workers to resume. */
  readonly resume: readonly number[];
  /** Idle workers to pause: they keep their memory and take no jobs. */
  readonly pause: readonly number[];
  readonly close: readonly number[];
  readonly stop: readonly number[];
  readonly outcome: string;
  readonly reason: string;
  readonly lookAt: number | undefined;
}

/** Decides, from the inputs alone, which workers to start, resume, pause, close (no more jobs) and stop. */
export function plan(inputs: ScaleInputs): Plan {
  const desire = desiredWorkers(inputs);
  const leaving = leave(inputs, desire);
  const usable = inputs.workers.filter((worker) => isUsable(worker) && !leaving.gone.has(worker.no));
  const staying = usable.filter((worker) => worker.version === inputs.version);
  const missing = Math.max(0, desire.want - staying.length);
  const paused = inputs.workers
    .filter(({ state, version, no }) => state === "paused" && version === inputs.version && !leaving.gone.has(no))
    .sort((a, b) => b.idleSince - a.idleSince)
    .map((worker) => worker.no);
  // a worker that got a job while being paused has to finish it
  const busy = inputs.workers.filter(({ state, held }) => state === "paused" && held > 0).map(({ no }) => no);
  const resume = [...new Set([...busy, ...paused.slice(0, missing)])];
  const { start, waitsUntil, isHeldUp } = starts(inputs, staying, missing - resume.length);
  const reason = leaving.reason || desire.reason;
  return {
    start,
    resume,
    pause: leaving.pause,
    close: leaving.close,
    stop: leaving.stop,
    outcome: outcome(start, resume.length, leaving, usable.length),
    reason:
      waitsUntil !== undefined
        ? `the last ${inputs.failedStarts} starts failed; pausing`
        : `${reason}${isHeldUp ? "; too many of this user's workers are not up yet" : ""}`,
    // workers of other endpoints may come up meanwhile
    lookAt: earliest(desire.lookAt, leaving.lookAt, waitsUntil, isHeldUp ? inputs.now + limits.netMs : undefined),
  };
}

/**
 * How many to start now: after a failed start one at a time, with growing pauses. `isHeldUp`: its user may not start all of
 * them.
 */
function starts(inputs: ScaleInputs, staying: readonly WorkerView[], missing: number) {
  const room = Math.max(0, inputs.settings.workersMax - inputs.workers.length);
  const mayStartAt = (inputs.failedAt ?? 0) + crashPauseMs(inputs.failedStarts);
  if (inputs.failedStarts > 0 && inputs.now < mayStartAt) {
    return { start: 0, waitsUntil: missing > 0 ? mayStartAt : undefined, isHeldUp: false };
  }
  const isTrying = inputs.failedStarts > 0 && !staying.some(isReady);
  const atOnce = isTrying ? Math.max(0, 1 - staying.length) : missing;
  const wanted = Math.max(0, Math.min(missing, room, atOnce));
  const start = wanted === 0 ? 0 : Math.min(wanted, inputs.mayStart());
  return { start, waitsUntil: undefined, isHeldUp: start < wanted };
}

function outcome(start: number, resume: number, leaving: Leaving, staying: number): string {
  const parts = [
    start > 0 ? `start ${start}` : "",
    resume > 0 ? `resume ${resume}` : "",
    leaving.pause.length > 0 ? `pause ${leaving.pause.length}` : "",
    leaving.stop.length > 0 ? `stop ${leaving.stop.length}` : "",
    leaving.close.length > 0 ? `close ${leaving.close.length}` : "",
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : `keep ${staying}`;
}
