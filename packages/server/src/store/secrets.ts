import type { Secret } from "../domain/access/secret.js";

/** A sealed secret of a job, by when it was noted. */
export interface JobSecret {
  readonly no: number;
  readonly value: string;
}

export interface SecretStore {
  /** `value` is sealed. */
  create(secret: Omit<Secret, "no"> & { readonly value: string }): Promise<Secret>;
  /** Changes what is given; a `value` is sealed. */
  change(no: number, fields: { readonly description: string; readonly value?: string }): Promise<void>;
  remove(no: number): Promise<void>;
  /** A user's secrets by name. */
  of(ownerNo: number): Promise<Secret[]>;
  /** The sealed values of a user's secrets with these names. */
  values(ownerNo: number, names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Notes sealed secrets of jobs that a worker is about to receive; its newest `heldJobsMax` are kept. */
  noteOfJobs(workerNo: number, values: readonly string[]): Promise<void>;
  /** The number of the newest secret that was noted for any worker; 0 if there is none. */
  newestOfJobs(): Promise<number>;
  /** The sealed secrets that were noted for a worker after the one with the number `after`, in order. */
  ofJobs(workerNo: number, after: number, limit: number): Promise<JobSecret[]>;
}
