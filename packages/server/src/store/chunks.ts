import type { JsonText } from "../domain/jobs/job.js";
import type { Holder } from "./jobs.js";

/** A piece of output, as JSON. */
export interface Chunk {
  readonly index: number;
  readonly start: number;
  readonly output: JsonText;
  readonly metrics: string | undefined;
}

/** A piece of output to be stored, with its metrics. */
export interface NewChunk {
  readonly output: JsonText;
  readonly metrics?: string;
}

/** A worker's chunks. `name`: the worker's own name for this call. */
export interface ChunkPost extends Holder {
  readonly chunks: readonly NewChunk[];
  readonly name?: string | undefined;
}

/** Chunks of a job from an index on, at least one, up to a number of bytes. */
export interface ChunkPage {
  readonly jobNo: number;
  readonly fromIndex: number;
  readonly bytesMax: number;
}

/** How many chunks of a job to delete. */
export interface ChunkTrim {
  readonly endpointNo: number;
  readonly jobNo: number;
  readonly most: number;
}

export interface ChunkStore {
  /**
   * Appends a worker's chunks; false if the worker no longer holds the job. A call with the same name as the previous
   * one, in the same start, is a repeat and changes nothing.
   */
  append(post: ChunkPost): Promise<boolean>;
  /**
   * Takes chunks that were not handed out yet, at least one, up to a number of bytes; `more` is true if any are left.
   */
  handOut(asked: Omit<ChunkPage, "fromIndex">): Promise<{ chunks: Chunk[]; more: boolean }>;
  /** Gives back chunks that a reply could not deliver, unless more were handed out since. */
  handBack(undelivered: { readonly jobNo: number; readonly chunks: readonly Chunk[] }): Promise<void>;
  /** Deletes the first chunks of a job that has ended, at most so many; returns how many there were. */
  trim(asked: ChunkTrim): Promise<number>;
  /** Reads chunks without consuming them. */
  read(page: ChunkPage): Promise<Chunk[]>;
}
