import type { EndpointSettings } from "../endpoints/endpoint.js";
import type { WorkerState } from "../workers/worker.js";

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
  /** Since when it holds nothing: its last job's end, its being ready, or, frozen, its pause. */
  readonly idleSince: number;
}

export interface ScaleInputs {
  readonly settings: Pick<
    EndpointSettings,
    "type" | "scalerType" | "scalerValue" | "workersMin" | "workersMax" | "idleTimeout" | "flashBootType"
  >;
  /** The version that workers are to be of. */
  readonly version: number;
  readonly demand: Demand;
  /** All that have not ended: they count towards workersMax until they have. */
  readonly workers: readonly WorkerView[];
  /** The most jobs that a worker of this version has held or asked for. */
  readonly slots: number;
  readonly failedStarts: number;
  readonly failedAt: number | undefined;
  /** Whether a worker of this version would find a place if these of its endpoint had ended. */
  readonly fitsWithout: (workerNos: readonly number[]) => boolean;
  /** How long a paused worker is kept. */
  readonly flashBootMs: number;
  readonly now: number;
}

export interface Desire {
  readonly want: number;
  readonly reason: string;
  /** When the answer may change by the passing of time alone. */
  readonly lookAt: number | undefined;
}

const usableStates: readonly WorkerState[] = ["throttled", "starting", "idle", "running"];
export const isUsable = ({ state }: WorkerView): boolean => usableStates.includes(state);
export const isReady = ({ state }: WorkerView): boolean => state === "idle" || state === "running";
