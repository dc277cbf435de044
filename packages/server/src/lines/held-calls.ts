import type { Scope } from "../domain/access/key.js";

/** A request or stream that is under way. */
export interface HeldCall {
  /** Whether a key with this scope may make this request. */
  mayStay(scope: Scope): boolean;
  end(): void;
}

/**
 * What is under way, by the hash of the secret that it came with. It ends when its key ends, or loses the right to
 * make it.
 */
export class HeldCalls {
  readonly #byHash = new Map<string, Set<HeldCall>>();
  readonly #onFirst: () => void;

  /** `onFirst` is called when a call is held where there was none. */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst;
  }

  get size(): number {
    return this.#byHash.size;
  }

  /** Holds a call. The returned function lets go of it. */
  hold(hash: string, call: HeldCall): () => void {
    const calls = this.#byHash.get(hash) ?? new Set();
    if (this.size === 0) this.#onFirst();
    this.#byHash.set(hash, calls.add(call));
    return () => {
      calls.delete(call);
      if (calls.size === 0 && this.#byHash.get(hash) === calls) this.#byHash.delete(hash);
    };
  }

  /** Ends the calls that their keys may no longer make. `scopeOf` returns undefined for a secret that no longer works. */
  endInvalid(scopeOf: (hash: string) => Scope | undefined): void {
    for (const [hash, calls] of this.#byHash) {
      const scope = scopeOf(hash);
      for (const call of calls) {
        if (scope !== undefined && call.mayStay(scope)) continue;
        calls.delete(call);
        call.end();
      }
      if (calls.size === 0) this.#byHash.delete(hash);
    }
  }
}
