import type { Resources, Worker } from "../domain/workers/worker.js";
import type { WorkerChange } from "../domain/workers/worker-life.js";

/** A worker's place, and the resources it has there. */
export type Placement = Omit<Extract<WorkerChange, { by: "place" }>, "by">;

export interface WorkerStore {
  create(worker: {
    id: string;
    endpointNo: number;
    version: number;
    hostNo: number;
    createdAt: number;
    resources?: Resources;
    /** Why it must wait for a place, if it must. */
    throttled?: string;
  }): Promise<Worker>;
  /**
   * Applies one change by the table of a worker's life. Returns false and changes nothing if the table no longer allows
   * it.
   */
  change(no: number, change: WorkerChange): Promise<boolean>;
  /** Gives a waiting worker its place; false if it no longer waits, or if another server now owns the scaler. */
  place(no: number, found: Placement): Promise<boolean>;
  /** All workers that have not ended, and workers that ended after `endedSince`. */
  all(endedSince: number): Promise<Worker[]>;
  /** An endpoint's workers, newest first, including ended workers. */
  ofEndpoint(endpointNo: number, limit: number): Promise<Worker[]>;
  find(id: string): Promise<Worker | undefined>;
  /** Of these ids, returns the ids of workers that have a secret and have not ended. */
  existing(ids: readonly string[]): Promise<string[]>;
  forget(endedBefore: number, most: number): Promise<number>;
}
