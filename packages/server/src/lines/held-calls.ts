/** Requests and streams that are under way, by the hash of the secret that they came with: they end with their key. */
export class HeldCalls {
  readonly #byHash = new Map<string, Set<() => void>>();
  readonly #onFirst: () => void;

  /** `onFirst` is called when a call is held where there was none. */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst;
  }

  get size(): number {
    return this.#byHash.size;
  }

  /** Holds a call; `end` ends it. The returned function lets go of it. */
  hold(hash: string, end: () => void): () => void {
    const calls = this.#byHash.get(hash) ?? new Set();
    if (this.size === 0) this.#onFirst();
    this.#byHash.set(hash, calls.add(end));
    return () => {
      calls.delete(end);
      if (calls.size === 0 && this.#byHash.get(hash) === calls) this.#byHash.delete(hash);
    };
  }

  /** Ends the calls of all secrets that no longer work. */
  endInvalid(isValid: (hash: string) => boolean): void {
    for (const [hash, calls] of this.#byHash) {
      if (isValid(hash)) continue;
      this.#byHash.delete(hash);
      for (const end of calls) end();
    }
  }
}
