import type { Clock } from "../clock.js";
import type { MillraceEvent } from "../events.js";
import { limits } from "../limits/index.js";
import { turns } from "../turns.js";

/** What has changed of an endpoint: its jobs, its workers, or its own settings; or of its owner: webhooks. */
export type Changed = "jobs" | "workers" | "endpoint" | "webhooks";

/** Something that has changed, for whoever shows it. */
export interface NewsItem {
  /** Absent for what belongs to no single endpoint: webhooks. */
  readonly endpointId?: string;
  readonly what: readonly Changed[];
}

/** By the numbers of owners, how much has changed for them at a server since it began to count. */
export type ChangesByOwner = Readonly<Record<number, number>>;

/** `much`: more has changed than is known one by one. */
type Listener = (items: readonly NewsItem[] | "much") => void;

/** By endpoint, or by owner for webhooks. */
type Noted = Map<string | number, { readonly what: Set<Changed>; ownerNo: number | undefined }>;
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
  /** By owner: nobody hears of another's changes, not even that there were some. */
  readonly #changes = new Map<number, { count: number; at: number }>();
  /** What each other server has counted. */
  #elsewhere = new Map<number, Map<string, number>>();
  readonly #dueElsewhere = new Set<number>();
  readonly #toldElsewhereAt = new Map<number, number>();

  constructor(clock: Clock, ownerOf: OwnerOf) {
    this.#clock = clock;
    this.#ownerOf = ownerOf;
  }

  /** Hears what happens; without listeners it only counts. */
  readonly hear = (event: MillraceEvent): void => {
    if (!("endpointId" in event)) return;
    const what = changedBy(event.type);
    if (!what) return;
    const ownerNo = this.#ownerOf(event.endpointId);
    if (ownerNo !== undefined) this.#count(ownerNo);
    this.note(event.endpointId, what);
  };

  /**
   * Notes a change of an endpoint, or of an owner's webhooks. `ownerNo` is the owner of an endpoint that may just have
   * been deleted. Other servers hear of changed settings by themselves: these are not counted.
   */
  note(of: string | number, what: Changed, ownerNo?: number): void {
    if (this.#listeners.size === 0) return;
    const noted = this.#changed.get(of) ?? { what: new Set(), ownerNo };
    noted.what.add(what);
    noted.ownerNo ??= ownerNo;
    this.#changed.set(of, noted);
    if (this.#isDue) return;
    this.#isDue = true;
    this.#clock.after(limits.newsRestMs, () => void this.#tell());
  }

  /** Notes that a user's webhooks have changed: an attempt was recorded, or a receiver was paused or resumed. */
  noteWebhooks(ownerNo: number): void {
    this.#count(ownerNo);
    this.note(ownerNo, "webhooks", ownerNo);
  }

  #count(ownerNo: number): void {
    const counted = this.#changes.get(ownerNo);
    const at = this.#clock.now();
    if (counted) Object.assign(counted, { count: counted.count + 1, at });
    else this.#changes.set(ownerNo, { count: 1, at });
  }

  /** How much has changed at this server, for the other servers: only owners with recent changes are in it. */
  get changes(): ChangesByOwner {
    const since = this.#clock.now() - limits.leaseMs;
    const lately = [...this.#changes].filter(([, { at }]) => at >= since);
    return Object.fromEntries(lately.map(([ownerNo, { count }]) => [ownerNo, count]));
  }

  /**
   * Learns, about once a second, how much has changed at each other server. An owner whose count has grown is told that
   * much has changed, but not again within a few seconds.
   */
  hearElsewhere(changes: ReadonlyMap<number, ChangesByOwner>): void {
    const known = this.#elsewhere;
    this.#elsewhere = new Map();
    for (const [serverNo, counts] of changes) {
      const before = known.get(serverNo) ?? new Map<string, number>();
      this.#elsewhere.set(serverNo, before);
      for (const [ownerNo, count] of Object.entries(counts)) {
        if (before.get(ownerNo) !== count) this.#dueElsewhere.add(Number(ownerNo));
        before.set(ownerNo, count);
      }
    }
    const now = this.#clock.now();
    for (const ownerNo of this.#dueElsewhere) {
      if (now < (this.#toldElsewhereAt.get(ownerNo) ?? Number.NEGATIVE_INFINITY) + limits.newsElsewhereMs) continue;
      this.#dueElsewhere.delete(ownerNo);
      if (!this.#listeners.has(ownerNo)) continue;
      this.#toldElsewhereAt.set(ownerNo, now);
      void this.#tellOwner(ownerNo, "much");
    }
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
    for (const [ownerNo, items] of this.#byOwner(changed)) await this.#tellOwner(ownerNo, items);
  }

  async #tellOwner(ownerNo: number, told: Parameters<Listener>[0]): Promise<void> {
    for (const listener of [...(this.#listeners.get(ownerNo) ?? [])]) {
      if (turns.isOver) await turns.take(["news"]);
      if (this.#listeners.get(ownerNo)?.has(listener)) listener(told);
    }
  }

  #byOwner(changed: Noted): Map<number, NewsItem[]> {
    const found = new Map<number, NewsItem[]>();
    for (const [of, { what, ownerNo = this.#ownerOf(String(of)) }] of changed) {
      if (ownerNo === undefined || !this.#listeners.has(ownerNo)) continue;
      const own = found.get(ownerNo) ?? [];
      own.push({ ...(typeof of === "string" && { endpointId: of }), what: [...what] });
      found.set(ownerNo, own);
    }
    return found;
  }
}
