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
  /** Whose it is, if it may have been deleted. */
  readonly ownerNo: number | undefined;
}

/** `much`: more has changed than is told one by one. */
type Listener = (items: readonly NewsItem[] | "much") => void;

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
  readonly #listeners = new Set<Listener>();
  #changed = new Map<string, { readonly what: Set<Changed>; ownerNo: number | undefined }>();
  #isDue = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Hears what happens; without listeners it remembers nothing. */
  readonly hear = (event: MillraceEvent): void => {
    if (this.#listeners.size === 0 || !("endpointId" in event)) return;
    const what = changedBy(event.type);
    if (what) this.note(event.endpointId, what);
  };

  /** Notes a change that is no event. */
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

  /** Calls `listener` with what has changed, until the returned function is called. */
  follow(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#changed.clear();
    };
  }

  readonly #tell = async (): Promise<void> => {
    this.#isDue = false;
    const items = [...this.#changed].map(([endpointId, { what, ownerNo }]) => ({
      endpointId,
      what: [...what],
      ownerNo,
    }));
    this.#changed = new Map();
    if (items.length === 0) return;
    const told = items.length > limits.newsItemsMax ? "much" : items;
    for (const listener of [...this.#listeners]) {
      if (turns.isOver) await turns.take(["news"]);
      if (this.#listeners.has(listener)) listener(told);
    }
  };
}
