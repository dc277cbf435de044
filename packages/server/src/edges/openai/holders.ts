/** Counts the clients that wait for each job: when the last one leaves, no client is left to read its result. */
export class Holders {
  readonly #counts = new Map<string, number>();

  /** Counts a client that waits. The returned function, called once, says whether it was the last. */
  hold(jobId: string): () => boolean {
    this.#counts.set(jobId, (this.#counts.get(jobId) ?? 0) + 1);
    return () => {
      const left = (this.#counts.get(jobId) ?? 1) - 1;
      if (left > 0) this.#counts.set(jobId, left);
      else this.#counts.delete(jobId);
      return left <= 0;
    };
  }
}
