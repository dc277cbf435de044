import { limits } from "../../limits/index.js";
import { turns } from "../../turns.js";
import type { Needs } from "../needs.js";

/** Reads the secrets of a worker's jobs that are noted: any server may have noted them. */
export class NotedSecrets {
  readonly #workerNo: number;
  /** The numbers of the newest ones that were read. */
  #known: ReadonlySet<number> = new Set();
  #last = 0;

  constructor(workerNo: number) {
    this.#workerNo = workerNo;
  }

  /** Those that it has not returned before; all of them at first. */
  async next({ secrets, vault }: Needs<"secrets" | "vault">): Promise<readonly string[]> {
    const found: string[] = [];
    const known = new Set<number>();
    // of two servers that note some at the same time, the one with the lower numbers may be the later one
    let last = Math.max(0, this.#last - limits.jobSecretsOverlap);
    for (let count: number = limits.jobSecretsRead; count === limits.jobSecretsRead; ) {
      if (turns.isOver) await turns.take(["secrets"]);
      const some = await secrets.ofJobs(this.#workerNo, last, limits.jobSecretsRead);
      for (const { no, value } of some) {
        known.add(no);
        if (!this.#known.has(no)) found.push(vault.open(value));
      }
      last = some.at(-1)?.no ?? last;
      count = some.length;
    }
    this.#known = known;
    this.#last = Math.max(this.#last, last);
    return found;
  }
}
