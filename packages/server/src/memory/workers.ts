import { PlainSignal } from "../clock.js";
import { isFrozen, type Worker } from "../domain/workers/worker.js";
import { changed, holds, type WorkerChange } from "../domain/workers/worker-life.js";
import { limits } from "../limits/index.js";
import type { Placement, Stores, WorkerStore } from "../store/index.js";
import { type LiveWorker, LiveWorkers } from "./live-workers.js";
import type { Writes } from "./writes.js";

/** The stored row, but `lastDoneAt` from memory: only a worker's first result is stored. */
const asStored = ({ lastDoneAt }: Worker, stored: Worker): Worker => ({
  ...stored,
  lastDoneAt: lastDoneAt ?? stored.lastDoneAt,
});

/** Workers in memory, with what this server has heard of them. Writes go through to the store. */
export class Workers {
  readonly #store: WorkerStore;
  readonly #shared: Stores["shared"];
  readonly #writes: Writes;
  readonly #live = new LiveWorkers();
  /** The mark of the last read, from which the next one goes on, and when all of them were last read. */
  #mark: string | undefined;
  #allReadAt = 0;
  /** By worker, the last change of its row under way. */
  readonly #changing = new WeakMap<LiveWorker, Promise<boolean>>();
  /** Workers with a refused change whose effect may still be in memory. */
  readonly #refused = new WeakSet<LiveWorker>();
  #listeningAt = 0;

  constructor({ workers, shared }: Pick<Stores, "workers" | "shared">, writes: Writes) {
    this.#store = workers;
    this.#shared = shared;
    this.#writes = writes;
  }

  get size(): number {
    return this.#live.size;
  }
  byId = (id: string): LiveWorker | undefined => this.#live.byId(id);
  byNo = (no: number): LiveWorker | undefined => this.#live.byNo(no);
  /** Workers that have not ended. */
  live = (): LiveWorker[] => this.#live.live();
  ended = (): ReadonlySet<LiveWorker> => this.#live.ended();
  endings = this.#live.endings;
  endedOf = (endpointNo: number): ReadonlySet<LiveWorker> => this.#live.endedOf(endpointNo);
  of = (endpointNo: number): LiveWorker[] => this.#live.of(endpointNo);

  /** Reads all of them at our start; each counts as heard of at `now`. */
  async load(now: number): Promise<void> {
    for (const row of await this.#store.all(now - limits.workerRowKeptMs)) this.#live.admit(row, now);
    this.forget(now - limits.workerRowKeptMs, now - limits.neverRanKeptMs);
  }

  async create(made: Parameters<WorkerStore["create"]>[0]): Promise<LiveWorker> {
    const row = await this.#store.create(made);
    const live = this.#live.byNo(row.no) ?? this.#live.admit(row, made.createdAt);
    this.#writes.wrote(live); // a read under way has not seen it
    return live;
  }

  /**
   * Changes a worker's row, in memory at once, so that it gets no more jobs meanwhile. False if the table of a worker's life
   * does not allow it, because another server changed the row first; then memory holds that server's row.
   */
  async change(worker: LiveWorker, change: WorkerChange): Promise<boolean> {
    const { no, id } = worker.row;
    worker.row = changed(worker.row, change);
    const isLast = () => this.#changing.get(worker) === saved;
    const save = async () => {
      const isMade = await this.#store.change(no, change);
      if (isMade && !(isLast() && this.#refused.has(worker))) return true;
      const stored = await this.#store.find(id);
      const isMadeBefore = stored !== undefined && holds(stored, change); // its connection broke, and it was sent twice
      if (!isMade && !isMadeBefore) this.#refused.add(worker);
      // if another change is pending, that change reloads the row
      if (stored && isLast() && this.#refused.delete(worker)) worker.row = asStored(worker.row, stored);
      return isMade || isMadeBefore;
    };
    // save changes of one worker in order: each was decided from the row that the previous change makes
    const before = this.#changing.get(worker);
    const saved: Promise<boolean> = this.#writes.during(worker, () => (before ? before.then(save, save) : save()));
    this.#changing.set(worker, saved);
    try {
      return await saved;
    } finally {
      if (isLast()) this.#changing.delete(worker);
    }
  }

  /** Gives a waiting worker its place. False if it no longer waits, or another server runs the scaler. */
  async place(worker: LiveWorker, found: Placement): Promise<boolean> {
    return this.#writes.during(worker, async () => {
      const isPlaced = await this.#store.place(worker.row.no, found);
      if (isPlaced) worker.row = { ...worker.row, ...found };
      return isPlaced;
    });
  }

  /** Forgets workers that ended before a time. Affects memory only. */
  forget = (endedBefore: number, neverRanBefore?: number): void => this.#live.forget(endedBefore, neverRanBefore);

  /**
   * Reads workers that were written since the last read; now and then all of them. `mark` was taken before this call:
   * rows written meanwhile are read again next time. Returns a function that applies them and calls `heard` with each
   * row.
   */
  async read(turn: number, now: number, mark: string | undefined, heard: (row: Worker) => void): Promise<() => void> {
    const before = this.live();
    const since = now < this.#allReadAt + limits.allWorkersReadMs ? this.#mark : undefined;
    const endedSince = now - limits.endedWorkersReadMs;
    const rows =
      this.#shared && since !== undefined
        ? await this.#shared.workersSince(since, endedSince)
        : await this.#store.all(endedSince);
    return () => {
      let isComplete = true;
      for (const row of rows) {
        const live = this.#live.byNo(row.no);
        if (!live) this.#live.admit(row, now);
        else if (!this.#writes.isNewer(live, turn)) live.row = row;
        else isComplete = false; // another server may have changed the row too: read it again
        this.#hear(row);
        heard(row);
      }
      if (since === undefined) {
        const left = before.filter((live) => !this.#writes.isNewer(live, turn));
        this.#missEnded(left, rows, now);
        this.#allReadAt = now;
      }
      if (isComplete) this.#mark = mark;
    };
  }

  /** Marks workers as ended that were no longer read: they ended while we did not look, too long ago to be read. */
  #missEnded(before: readonly LiveWorker[], read: readonly Worker[], now: number): void {
    const there = new Set(read.map(({ no }) => no));
    for (const live of before) {
      if (there.has(live.row.no) || live.row.endedAt !== undefined) continue;
      live.row = { ...live.row, wanted: "stopped", endedAt: now };
      live.dismissed.abort();
    }
  }

  /** Takes in what other servers have heard of a worker. */
  #hear(row: Worker): void {
    const live = this.#live.byNo(row.no) as LiveWorker;
    live.seenAt = Math.max(live.seenAt, row.seenAt);
    live.busyAt = Math.max(live.busyAt, row.busyAt);
    live.polledAt = Math.max(live.polledAt, row.polledAt);
    // decided from the row in memory: the row just read may be older than our own last change
    const { askedAt, endedAt, wanted } = live.row;
    if (askedAt !== undefined || endedAt !== undefined || isFrozen(live.row)) live.dismissed.abort();
    else if (live.dismissed.aborted && wanted === "running") live.dismissed = new PlainSignal();
  }

  /** Since when this server has listened to the workers of others. */
  get listeningAt(): number {
    return this.#listeningAt;
  }

  /**
   * Restarts every worker's silence, because we did not listen. `tends`: except on the hosts that we tend, whose
   * workers talked to us.
   */
  hearAll(now: number, tends: (hostNo: number) => boolean = () => false): void {
    this.#listeningAt = now;
    for (const worker of this.live()) {
      if (!tends(worker.row.hostNo)) worker.seenAt = worker.polledAt = now;
    }
  }
}
