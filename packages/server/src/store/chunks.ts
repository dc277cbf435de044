import type { JsonText } from "../domain/jobs/job.js";

/** A piece of output, as JSON. */
export interface Chunk {
  readonly index: number;
  readonly start: number;
  readonly output: JsonText;
  readonly metrics: string | undefined;
}

/** A piece of output to be stored, with what its worker says of it. */
export interface NewChunk {
  readonly output: JsonText;
  readonly metrics?: string;
}

export interface ChunkStore {
  /**
   * Appends a worker's chunks; false where it no longer holds the job. `name` is the worker's own for this call: one of the same
   * name as the call before it, in the same start, is a repeat and changes nothing.
   */
  append(
    endpointNo: number,
    jobId: string,
    workerNo: number,
    pieces: readonly NewChunk[],
    name?: string,
  ): Promise<boolean>;
  /** Takes the chunks not yet handed out, up to a number of bytes (at least one); `more` says whether any is left. */
  handOut(jobNo: number, bytesMax: number): Promise<{ chunks: Chunk[]; more: boolean }>;
  /** Gives back what a reply could not deliver, where nothing was handed out since. */
  handBack(jobNo: number, chunks: readonly Chunk[]): Promise<void>;
  /** Reads without consuming, from an index on. */
  read(jobNo: number, fromIndex: number, bytesMax: number): Promise<Chunk[]>;
}
