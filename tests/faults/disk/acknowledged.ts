/** Something that the server acknowledged: it must be on the disk for good. */
export type Word =
  | { readonly of: "endpoint"; readonly id: string }
  | { readonly of: "submit"; readonly job: string; readonly key: string | undefined }
  | { readonly of: "take"; readonly job: string }
  | { readonly of: "chunk"; readonly job: string; readonly output: string }
  | { readonly of: "settle"; readonly job: string; readonly output: string | undefined }
  | { readonly of: "cancel"; readonly job: string };

/** What is known of one job. */
export interface KnownJob {
  key: string | undefined;
  taken: boolean;
  chunks: string[];
  /** Its final state; `output` is absent if it failed. */
  end: { readonly status: "COMPLETED" | "FAILED" | "CANCELLED"; readonly output?: string } | undefined;
}

/** Everything that the server has acknowledged up to a moment. */
export class Acknowledged {
  endpoint: string | undefined;
  readonly jobs = new Map<string, KnownJob>();

  hear(word: Word): void {
    if (word.of === "endpoint") {
      this.endpoint = word.id;
      return;
    }
    const job = this.#job(word.job);
    if (word.of === "submit") job.key = word.key;
    if (word.of === "take") job.taken = true;
    if (word.of === "chunk") job.chunks.push(word.output);
    if (word.of === "cancel") job.end = { status: "CANCELLED" };
    if (word.of === "settle")
      job.end = word.output === undefined ? { status: "FAILED" } : { status: "COMPLETED", output: word.output };
  }

  /** A worker may hold a job, and report on it, before the job's client reads its 200. */
  #job(id: string): KnownJob {
    const job = this.jobs.get(id) ?? { key: undefined, taken: false, chunks: [], end: undefined };
    this.jobs.set(id, job);
    return job;
  }
}
