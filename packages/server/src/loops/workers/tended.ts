import type { LiveWorker } from "../../memory/registry.js";
import type { Provider } from "../../provider.js";

/** What this process knows of the workers that it tends, by their ids. */
export class Tended {
  readonly #provider: Provider;
  /** Workers that this process has started or seen running; for any other, it first asks what became of it. */
  readonly known = new Set<string>();
  /** Workers being started, with what aborts the start when they are no longer wanted. */
  readonly starting = new Map<string, AbortController>();
  /**
   * Workers whose secret could not be stored, with the time to try again. The provider has not been asked for them yet.
   */
  readonly unstored = new Map<string, number>();
  /** Workers that have been asked to stop. */
  readonly asked = new Set<string>();
  /** Workers that have been killed; killing is repeated until their end is seen. */
  readonly killed = new Set<string>();
  /** Workers that their provider has reported as ended. */
  readonly gone = new Set<string>();
  /** Workers being looked at now. */
  readonly busy = new Set<string>();
  /** Workers that were due to be looked at while they were busy. */
  readonly again = new Set<string>();
  /** By worker, the time of the last freeze or thaw that was carried out. */
  readonly frozenOrThawed = new Map<string, number>();

  constructor(provider: Provider) {
    this.#provider = provider;
  }

  /** Forgets an ended worker, and has its provider forget it. */
  async forget({ row }: LiveWorker): Promise<void> {
    const { known, unstored, asked, killed, gone, frozenOrThawed } = this;
    for (const each of [known, unstored, asked, killed, gone, frozenOrThawed]) each.delete(row.id);
    await this.#provider.forget(row.id);
  }
}
