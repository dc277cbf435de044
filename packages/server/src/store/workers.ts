import type { Resources, Worker } from "../domain/workers/worker.js";
import type { WorkerChange } from "../domain/workers/worker-life.js";

/** Where a worker is to be, and what it has there. */
export type Place = Omit<Extract<WorkerChange, { by: "place" }>, "by">;

export interface WorkerStore {
  create(worker: {
    id: string;
    endpointNo: number;
    version: number;
    hostNo: number;
    createdAt: number;
    resources?: Resources;
    /** Why it has to wait for a place, where it has to. */
    throttled?: string;
  }): Promise<Worker>;
  /** One change by the table of a worker's life. False where that does not allow it by now: then nothing is changed. */
  change(no: number, change: WorkerChange): Promise<boolean>;
  /** Gives a worker that waits for one its place; false where it waits no more, or another server decides by now. */
  place(no: number, found: Place): Promise<boolean>;
  /** All that have not ended, and those that ended after `endedSince`. */
  all(endedSince: number): Promise<Worker[]>;
  /** An endpoint's workers, the newest first, also those that ended. */
  ofEndpoint(endpointNo: number, limit: number): Promise<Worker[]>;
  find(id: string): Promise<Worker | undefined>;
  /** Those of these ids whose workers have a secret, and have not ended. */
  existing(ids: readonly string[]): Promise<string[]>;
  forget(endedBefore: number): Promise<void>;
}
