import { realTime } from "../clock.js";
import { limits } from "../limits/index.js";
import type { Stores } from "../store/index.js";

/** What may be missing in memory because another server has just made it. */
export type Sought = "key" | "endpoint" | "volume" | "worker";

interface Miss {
  readonly kind: Sought;
  readonly id: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The form of all our ids and hashes; anything else is not looked up. */
const isId = (id: string): boolean => /^[\w-]{1,128}$/.test(id);

/**
 * Looks in the store for ids and keys that are not in memory. Misses are gathered into one indexed query per kind. If
 * it finds any of them, memory is read again. Misses are never remembered, because another server may add the row at
 * any moment.
 */
export class Misses {
  readonly #stores: Stores;
  readonly #refresh: () => Promise<void>;
  readonly #waiting: Miss[] = [];
  #isSet = false;
  #lookedAt = 0;

  constructor(stores: Stores, refresh: () => Promise<void>) {
    this.#stores = stores;
    this.#refresh = refresh;
  }

  /** Resolves once the thing is in memory, or is known to exist nowhere. */
  async look(kind: Sought, id: string): Promise<void> {
    if (!isId(id)) return;
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ kind, id, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isSet || this.#waiting.length === 0) return;
    this.#isSet = true;
    const inMs = Math.max(0, this.#lookedAt + limits.missGapMs - realTime.monotonicMs());
    realTime.after(inMs, () => void this.#turn());
  }

  async #turn(): Promise<void> {
    this.#lookedAt = realTime.monotonicMs();
    const batch = this.#waiting.splice(0, limits.missesMax);
    try {
      const found = await this.#find(batch);
      if (found.size > 0) await this.#refresh();
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      this.#isSet = false;
      this.#schedule();
    }
  }

  async #find(batch: readonly Miss[]): Promise<ReadonlySet<string>> {
    const { access, endpoints, volumes, workers } = this.#stores;
    const stores = { key: access, endpoint: endpoints, volume: volumes, worker: workers };
    const kinds = [...new Set(batch.map(({ kind }) => kind))];
    const names = kinds.map(async (kind) => {
      const ids = new Set(batch.filter((miss) => miss.kind === kind).map(({ id }) => id));
      return (await stores[kind].existing([...ids])).map((id) => nameOf(kind, id));
    });
    return new Set((await Promise.all(names)).flat());
  }
}

const nameOf = (kind: Sought, id: string): string => `${kind}/${id}`;
