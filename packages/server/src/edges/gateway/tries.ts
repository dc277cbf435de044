import { limits } from "../../limits/index.js";
import { isIdempotent } from "./body.js";
import type { Verdict } from "./verdict.js";

/** What has been tried for one request. */
export class Tries {
  #workers: Set<number> | undefined;
  #lost = 0;
  #unsent = 0;

  /** Workers that have failed the request; undefined if none has. */
  get workers(): ReadonlySet<number> | undefined {
    return this.#workers;
  }

  /** Whether a worker may have seen the request. */
  get wasLost(): boolean {
    return this.#lost > 0;
  }

  failedAt(workerNo: number): void {
    this.#workers ??= new Set();
    this.#workers.add(workerNo);
  }

  /**
   * Counts a failure and says whether the request may be sent again. A request that reached no worker may be repeated,
   * and so may an idempotent request that a worker may have seen; each only a bounded number of times.
   */
  mayGoOn(verdict: Verdict, method: string): boolean {
    if (verdict === "unreached") return true; // each shuts a worker until it is reached again; then the request waits
    if (verdict === "unsent") return ++this.#unsent < limits.gateDialsMax;
    return verdict === "lost" && isIdempotent(method) && ++this.#lost < limits.gateTriesMax;
  }
}
