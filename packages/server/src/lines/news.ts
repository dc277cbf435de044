import type { Clock } from "../clock.js";
import type { MillraceEvent } from "../events.js";
import { limits } from "../limits/index.js";
import { turns } from "../turns.js";

/** What has changed of an endpoint: its jobs, its workers, or its own settings. */
export type Changed = "jobs" | "workers" | "endpoint";

/** Something that has changed, for whoever shows it. */
export interface NewsItem {
  readonly endpointId: string;
  readonly what: readonly Changed[];
}

/** `much`: more has changed than is told one by one. */
type Listener = (items: readonly NewsItem[] | "much") => void;

type Noted = Map<string, { readonly what: Set<Changed>; ownerNo: number | undefined }>;
type OwnerOf = (endpointId: string) => number | undefined;

const changedBy = (type: MillraceEvent["type"]): Changed | undefined => {
  if (type.startsWith("job.")) return "jobs";
  if (type.startsWith("worker.")) return "workers";
  return type === "endpoint.scaled" ? "workers" : undefined;
};

/**
 * Tells those who look at endpoints that something has happened to them, a few times a second however much does: what
 * an event costs depends neither on their number nor on its kind.
 */
export class News {
  readonly #clock: Clock;
  readonly #ownerOf: OwnerOf;
  /** By owner: each hears only of its own. */
  readonly #listeners = new Map<number, Set<Listener>>();
  #changed: Noted = new Map();
  #isDue = false;

  constructor(clock: Clock, ownerOf: OwnerOf) {
    this.#clock = clock;
    this.#ownerOf = ownerOf;
  }

  /** Hears what happens; without listeners it remembers nothing. */
  readonly hear = (event: MillraceEvent): void => {
    if (this.#listeners.size === 0 || !("endpointId" in event)) return;
    const what = changedBy(event.type);
    if (what) this.note(event.endpointId, what);
  };

  /** Notes a change that no event reports. `ownerNo` is the owner of an endpoint that may just have been deleted. */
  note(endpointId: string, what: Changed, ownerNo?: number): void {
    if (this.#listeners.size === 0) return;
    const noted = this.#changed.get(endpointId) ?? { what: new Set(), ownerNo };
    noted.what.add(what);
    noted.ownerNo ??= ownerNo;
    this.#changed.set(endpointId, noted);
    if (this.#isDue) return;
    this.#isDue = true;
    this.#clock.after(limits.newsRestMs, () => void this.#tell());
  }

  /** Calls `listener` with what has changed of an owner's endpoints, until the returned function is called. */
  follow(ownerNo: number, listener: Listener): () => void {
    const own = this.#listeners.get(ownerNo) ?? new Set();
    this.#listeners.set(ownerNo, own.add(listener));
    return () => {
      own.delete(listener);
      if (own.size === 0 && this.#listeners.get(ownerNo) === own) this.#listeners.delete(ownerNo);
      if (this.#listeners.size === 0) this.#changed.clear();
    };
  }

  async #tell(): Promise<void> {
    this.#isDue = false;
    const changed = this.#changed;
    this.#changed = new Map();
    for (const [ownerNo, items] of this.#byOwner(changed)) {
      const told = items.length > limits.newsItemsMax ? "much" : items;
      for (const listener of [...(this.#listeners.get(ownerNo) ?? [])]) {
        if (turns.isOver) await turns.take(["news"]);
        if (this.#listeners.get(ownerNo)?.has(listener)) listener(told);
      }
    }
  }

  #byOwner(changed: Noted): Map<number, NewsItem[]> {
    const found = new Map<number, NewsItem[]>();
    for (const [endpointId, { what, ownerNo = this.#ownerOf(endpointId) }] of changed) {
      if (ownerNo === undefined || !this.#listeners.has(ownerNo)) continue;
      const own = found.get(ownerNo) ?? [];
      own.push({ endpointId, what: [...what] });
      found.set(ownerNo, own);
    }
    return found;
  }
}
