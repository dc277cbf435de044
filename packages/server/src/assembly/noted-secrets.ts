import { limits } from "../limits/index.js";
import { NotedSecrets } from "../operations/access/noted-secrets.js";
import type { Needs } from "../operations/needs.js";
import type { JobSecrets } from "../provider.js";

type Reading = Needs<"secrets" | "vault" | "registry" | "clock">;

/**
 * The secrets of workers' jobs for the providers that keep their logs. A server that `isAlone` reads them once: it notes
 * all others itself, and tells its providers. Where there are several, one look for all workers says whether there are
 * new ones.
 */
export function notedSecrets(needs: Reading, { isAlone }: { isAlone: boolean }): JobSecrets {
  const newest = new Newest(needs);
  return (workerId) => {
    let noted: NotedSecrets | undefined;
    let readAt = Number.NEGATIVE_INFINITY;
    return async () => {
      const worker = needs.registry.worker(workerId);
      if (!worker || (isAlone && noted !== undefined)) return [];
      // one that was noted shortly before another one may be seen only after it
      if (noted !== undefined && (await newest.changedAt()) < readAt - limits.jobSecretsLateMs) return [];
      const now = needs.clock.now();
      const reading = noted ?? new NotedSecrets(worker.row.no);
      const found = await reading.next(needs);
      [noted, readAt] = [reading, now];
      return found;
    };
  };
}

/** When the number of the newest noted secret was first seen. */
class Newest {
  readonly #needs: Reading;
  #no: number | undefined;
  #changedAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** Begins when the present look is over. */
  #next: Promise<void> | undefined;

  constructor(needs: Reading) {
    this.#needs = needs;
  }

  /** Looks after this call: what was noted before it counts. */
  async changedAt(): Promise<number> {
    if (this.#reading) this.#next ??= this.#reading.catch(() => {}).then(() => this.#begin());
    await (this.#next ?? this.#begin());
    return this.#changedAt;
  }

  #begin(): Promise<void> {
    this.#next = undefined;
    this.#reading = this.#look().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #look(): Promise<void> {
    const { clock, secrets } = this.#needs;
    const waitMs = this.#readAt + limits.jobSecretsGapMs - clock.now();
    if (waitMs > 0) await clock.sleep(waitMs);
    this.#readAt = clock.now();
    const no = await secrets.newestOfJobs();
    if (no !== this.#no) this.#changedAt = clock.now();
    this.#no = no;
  }
}
