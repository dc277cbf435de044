import { limits } from "../limits.js";
import type { EndpointSettings } from "./endpoint.js";
import type { WorkerState } from "./worker.js";

/** What waits and runs at one endpoint. */
export interface Demand {
  readonly waiting: number;
  /** Those of `waiting` that are not lowPriority: only they cause a worker to start. */
  readonly waitingNormal: number;
  readonly running: number;
  /** Since when the oldest normal job waits. */
  readonly oldestAt: number | undefined;
}

/** A worker as the scaler sees it. */
export interface WorkerView {
  readonly no: number;
  readonly state: WorkerState;
  readonly held: number;
  readonly version: number;
  /** Since when it holds nothing: its last job's end, or its being ready. */
  readonly idleSince: number;
}

export interface ScaleInputs {
  readonly settings: Pick<EndpointSettings, "scalerType" | "scalerValue" | "workersMin" | "workersMax" | "idleTimeout">;
  readonly version: number;
  readonly demand: Demand;
  /** All that have not ended: they count towards workersMax until they have. */
  readonly workers: readonly WorkerView[];
  /** The most jobs that a worker of this version has held or asked for. */
  readonly slots: number;
  readonly failedStarts: number;
  readonly failedAt: number | undefined;
  readonly now: number;
}

export interface Desire {
  readonly want: number;
  readonly reason: string;
  /** When the answer may change by the passing of time alone. */
  readonly lookAt: number | undefined;
}

const usable = (worker: WorkerView) =>
  worker.state === "starting" || worker.state === "idle" || worker.state === "running";

/**
 * How many usable workers an endpoint should have now.
 * QUEUE_DELAY with scalerValue 4, one busy worker of one slot, three jobs of which the oldest waits 5 s: 1 + 3 = 4.
 */
export function desiredWorkers(inputs: ScaleInputs): Desire {
  const { settings, demand, now, version } = inputs;
  const mine = inputs.workers.filter((worker) => usable(worker) && worker.version === version);
  const starting = mine.filter((worker) => worker.state === "starting").length;
  const bounded = (want: number, reason: string, lookAt?: number): Desire => {
    if (want > settings.workersMax)
      return { want: settings.workersMax, reason: `${reason}; workersMax is ${settings.workersMax}`, lookAt };
    if (want < settings.workersMin)
      return { want: settings.workersMin, reason: `workersMin is ${settings.workersMin}`, lookAt };
    return { want, reason, lookAt };
  };
  if (settings.scalerType === "REQUEST_COUNT") {
    const count = demand.waitingNormal + demand.running;
    return bounded(Math.ceil(count / settings.scalerValue), `${count} jobs, ${settings.scalerValue} for each worker`);
  }
  if (demand.waitingNormal === 0) return bounded(0, "nothing waits");
  if (mine.length === 0) return bounded(1, "a job waits and there is no worker");
  const lateAt = (demand.oldestAt ?? now) + settings.scalerValue * 1_000;
  if (now < lateAt) return bounded(mine.length, `no job has waited ${settings.scalerValue} s yet`, lateAt);
  const needed = Math.ceil(demand.waitingNormal / inputs.slots);
  return bounded(
    mine.length - starting + Math.max(starting, needed),
    `a job has waited over ${settings.scalerValue} s, ${demand.waitingNormal} wait, ${inputs.slots} for each worker`,
  );
}

/** How long after the last failed start the next may come: 1 s, 2 s, 4 s … 5 min. */
export const crashPauseMs = (failedStarts: number): number =>
  failedStarts === 0 ? 0 : Math.min(limits.crashPauseMsMin * 2 ** (failedStarts - 1), limits.crashPauseMsMax);

/** What to do so that an endpoint has what it should. */
export interface Plan {
  readonly start: number;
  readonly close: readonly number[];
  readonly stop: readonly number[];
  readonly outcome: string;
  readonly reason: string;
  readonly lookAt: number | undefined;
}

/** Decides from the inputs alone which workers to start, to close (no more jobs) and to stop. */
export function plan(inputs: ScaleInputs): Plan {
  const desire = desiredWorkers(inputs);
  const leaving = leave(inputs, desire);
  const staying = inputs.workers.filter(
    (worker) => usable(worker) && worker.version === inputs.version && !leaving.gone.has(worker.no),
  );
  const missing = Math.max(0, desire.want - staying.length);
  const room = Math.max(0, inputs.settings.workersMax - inputs.workers.length);
  const mayStartAt = (inputs.failedAt ?? 0) + crashPauseMs(inputs.failedStarts);
  const paused = inputs.failedStarts > 0 && inputs.now < mayStartAt;
  // after a failed start one worker tries at a time
  const atOnce = inputs.failedStarts > 0 && !staying.some((worker) => worker.state !== "starting") ? 1 : missing;
  const already = inputs.failedStarts > 0 ? staying.filter((worker) => worker.state === "starting").length : 0;
  const start = paused ? 0 : Math.max(0, Math.min(missing, room, atOnce - already));
  const lookAts = [desire.lookAt, leaving.lookAt, paused && missing > 0 ? mayStartAt : undefined].filter(
    (at) => at !== undefined,
  );
  return {
    start,
    close: leaving.close,
    stop: leaving.stop,
    outcome: outcome(start, leaving, staying.length),
    reason:
      paused && missing > 0
        ? `the last ${inputs.failedStarts} starts failed; pausing`
        : leaving.reason || desire.reason,
    lookAt: lookAts.length > 0 ? Math.min(...lookAts) : undefined,
  };
}

interface Leaving {
  readonly stop: number[];
  readonly close: number[];
  readonly gone: ReadonlySet<number>;
  readonly reason: string;
  readonly lookAt: number | undefined;
}

function leave(inputs: ScaleInputs, desire: Desire): Leaving {
  const { settings, now } = inputs;
  const stop = inputs.workers
    .filter((worker) => worker.state === "closing" && worker.held === 0)
    .map((worker) => worker.no);
  const close: number[] = [];
  const dismiss = (worker: WorkerView) => void (worker.held > 0 ? close : stop).push(worker.no);
  const live = inputs.workers.filter(usable);
  let reason = "";

  const outdated = live.filter((worker) => worker.version !== inputs.version);
  for (const worker of outdated) dismiss(worker);
  if (outdated.length > 0) reason = `a new version (${inputs.version}) replaces the workers there are`;

  // the longest idle first, then those that start, then the busy ones
  const rank = (worker: WorkerView) => (worker.state === "idle" ? 0 : worker.state === "starting" ? 1 : 2);
  const current = live
    .filter((worker) => worker.version === inputs.version)
    .sort((a, b) => rank(a) - rank(b) || a.idleSince - b.idleSince);
  const excess = current.splice(0, Math.max(0, current.length - settings.workersMax));
  for (const worker of excess) dismiss(worker);
  if (excess.length > 0) reason = `workersMax is ${settings.workersMax}`;

  const keep = Math.max(settings.workersMin, settings.scalerType === "REQUEST_COUNT" ? desire.want : 0);
  let spare = current.length - keep;
  let lookAt: number | undefined;
  for (const worker of current) {
    // while jobs wait an idle worker is about to take one
    if (worker.state !== "idle" || spare <= 0 || inputs.demand.waiting > 0) break;
    const idleUntil = worker.idleSince + settings.idleTimeout * 1_000;
    if (now < idleUntil) {
      lookAt = idleUntil;
      break;
    }
    stop.push(worker.no);
    reason = `idle for ${settings.idleTimeout} s`;
    spare--;
  }
  return { stop, close, gone: new Set([...stop, ...close]), reason, lookAt };
}

function outcome(start: number, leaving: Leaving, staying: number): string {
  const parts = [
    start > 0 ? `start ${start}` : "",
    leaving.stop.length > 0 ? `stop ${leaving.stop.length}` : "",
    leaving.close.length > 0 ? `close ${leaving.close.length}` : "",
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : `keep ${staying}`;
}
