import type { EndpointSettings } from "../endpoints/endpoint.js";
import type { WorkerState } from "../workers/worker.js";

/** What waits and runs for one endpoint. */
export interface Demand {
  readonly waiting: number;
  /** How many of `waiting` are not lowPriority: only these cause workers to start. */
  readonly waitingNormal: number;
  readonly running: number;
  /** When the oldest normal job began to wait. */
  readonly oldestAt: number | undefined;
}

/** A worker as the scaler sees it. */
export interface WorkerView {
  readonly no: number;
  /** One that still runs a stopped job, and has no room for another, is "running" and holds none. */
  readonly state: WorkerState;
  readonly held: number;
  readonly version: number;
  /**
   * Since when it holds nothing: since its last job ended, since it became ready or, if frozen, since it was paused.
   */
  readonly idleSince: number;
  /** It cannot be frozen: FlashBoot stops it. */
  readonly isUnfreezable?: boolean;
}

export interface ScaleInputs {
  readonly settings: Pick<
    EndpointSettings,
    "type" | "scalerType" | "scalerValue" | "workersMin" | "workersMax" | "idleTimeout" | "flashBootType"
  >;
  /** The version that workers should have. */
  readonly version: number;
  readonly demand: Demand;
  /** All workers that have not ended: until then they count towards workersMax. */
  readonly workers: readonly WorkerView[];
  /** The most jobs that a worker of this version has held or asked for. */
  readonly slots: number;
  readonly failedStarts: number;
  readonly failedAt: number | undefined;
  /** Whether a worker of this version would find a place if these workers of the endpoint had ended. */
  readonly fitsWithout: (workerNos: readonly number[]) => boolean;
  /** How many more workers its user may start now. */
  readonly mayStart: () => number;
  /** How long a paused worker is kept. */
  readonly flashBootMs: number;
  readonly now: number;
}

export interface Desire {
  readonly want: number;
  readonly reason: string;
  /** When the answer may change merely because time passes. */
  readonly lookAt: number | undefined;
}

const usableStates: readonly WorkerState[] = ["throttled", "starting", "idle", "running"];
export const isUsable = ({ state }: WorkerView): boolean => usableStates.includes(state);
export const isReady = ({ state }: WorkerView): boolean => state === "idle" || state === "running";
