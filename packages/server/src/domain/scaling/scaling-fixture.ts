import type { ScaleInputs, WorkerView } from "./scale-inputs.js";
import { plan } from "./scaling.js";

export const now = 1_000_000;

export const seconds = (n: number) => n * 1_000;

/** A worker of the present version, idle for a moment unless `more` changes that. */
export const worker = (no: number, more: Partial<WorkerView> = {}): WorkerView => ({
  no,
  state: "idle",
  held: 0,
  version: 1,
  idleSince: now,
  ...more,
});

export const busy = (no: number, more: Partial<WorkerView> = {}) => worker(no, { state: "running", held: 1, ...more });

export const starting = (no: number, more: Partial<WorkerView> = {}) => worker(no, { state: "starting", ...more });

export const idle = (no: number, forMs: number, more: Partial<WorkerView> = {}) =>
  worker(no, { idleSince: now - forMs, ...more });

export interface Case {
  readonly settings?: Partial<ScaleInputs["settings"]>;
  readonly waiting?: number;
  readonly lowPriority?: number;
  readonly running?: number;
  readonly waitedMs?: number;
  readonly workers?: readonly WorkerView[];
  readonly slots?: number;
  readonly failedStarts?: number;
  readonly failedAgoMs?: number;
  readonly fitsWithout?: ScaleInputs["fitsWithout"];
  readonly mayStart?: number;
}

export function inputs(each: Case): ScaleInputs {
  const { waiting = 0, lowPriority = 0, workers = [], waitedMs = 0, failedAgoMs } = each;
  return {
    settings: {
      type: "QB",
      flashBootType: "OFF",
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      workersMin: 0,
      workersMax: 3,
      idleTimeout: 5,
      ...each.settings,
    },
    version: 1,
    fitsWithout: each.fitsWithout ?? (() => true),
    mayStart: () => each.mayStart ?? Number.POSITIVE_INFINITY,
    flashBootMs: 3_600_000,
    demand: {
      waiting: waiting + lowPriority,
      waitingNormal: waiting,
      running: each.running ?? workers.reduce((sum, { held }) => sum + held, 0),
      oldestAt: waiting > 0 ? now - waitedMs : undefined,
    },
    workers,
    slots: each.slots ?? 1,
    failedStarts: each.failedStarts ?? 0,
    failedAt: failedAgoMs === undefined ? undefined : now - failedAgoMs,
    now,
  };
}

export const planned = (each: Case) => {
  const { start, stop, close } = plan(inputs(each));
  return { start, stop, close };
};

export const nothing = { start: 0, stop: [], close: [] };
