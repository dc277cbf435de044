import type { ScaleInputs, WorkerView } from "./scale-inputs.js";
import { plan } from "./scaling.js";

/** A job as it was: when it came, and how long it ran. */
export interface PastJob {
  readonly at: number;
  readonly runMs: number;
}

/** What is the same in every replay of an endpoint. */
export interface ReplayFacts {
  /** Jobs that a worker runs at a time. */
  readonly slots: number;
  /** From the decision to start a worker until it takes jobs. */
  readonly startMs: number;
}

/** What came of a replay. */
export interface Replayed {
  /** Jobs that no worker has taken in the end, because there may be none. */
  readonly neverRan: number;
  readonly waitP95Ms: number;
  readonly workerMs: number;
  readonly starts: number;
}

interface Worker {
  readonly no: number;
  readonly since: number;
  readyAt: number;
  idleSince: number;
  isClosing: boolean;
  /** When its jobs end. */
  readonly ends: number[];
}

/**
 * Submits past jobs again, at the times at which they came, to the scaler with these settings: the same decisions, with
 * workers that all start equally fast and never fail. FlashBoot is left out: its paused workers count as stopped. Yields
 * after each step, so that a caller can share out its time; `jobs` are in the order in which they came.
 */
export function* replay(
  jobs: readonly PastJob[],
  settings: ScaleInputs["settings"],
  facts: ReplayFacts,
): Generator<void, Replayed> {
  const world = new World(settings, facts);
  let next = 0;
  for (let now: number | undefined = jobs[0]?.at; now !== undefined; ) {
    for (let job = jobs[next]; job && job.at <= now; job = jobs[++next]) world.queue.push(job);
    const lookAt = world.step(now);
    yield;
    const isOver = next === jobs.length && world.isAtRest && lookAt === undefined;
    now = isOver ? undefined : earliestAfter(now, [jobs[next]?.at, world.nextAt, lookAt]);
  }
  return world.told;
}

class World {
  readonly queue: PastJob[] = [];
  readonly #settings: ScaleInputs["settings"];
  readonly #facts: ReplayFacts;
  readonly #waits: number[] = [];
  #workers: Worker[] = [];
  #starts = 0;
  #workerMs = 0;
  #now = 0;

  constructor(settings: ScaleInputs["settings"], facts: ReplayFacts) {
    this.#settings = { ...settings, flashBootType: "OFF" };
    this.#facts = facts;
  }

  /** Nothing waits, runs, or is on its way. */
  get isAtRest(): boolean {
    return (
      this.queue.length === 0 && this.#workers.every(({ ends, readyAt }) => ends.length === 0 && readyAt <= this.#now)
    );
  }

  /** When something happens by itself next. */
  get nextAt(): number | undefined {
    const times = this.#workers.flatMap(({ readyAt, ends }) => [...ends, ...(readyAt > this.#now ? [readyAt] : [])]);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  get told(): Replayed {
    const still = this.#workers.reduce((sum, { since }) => sum + this.#now - since, 0);
    const sorted = this.#waits.toSorted((a, b) => a - b);
    const p95 = sorted[Math.max(0, Math.ceil(sorted.length * 0.95) - 1)] ?? 0;
    return { neverRan: this.queue.length, waitP95Ms: p95, workerMs: this.#workerMs + still, starts: this.#starts };
  }

  /** Lets happen what is due, and decides; when to look again if nothing else happens. */
  step(now: number): number | undefined {
    this.#now = now;
    for (const worker of this.#workers) this.#end(worker, now);
    this.#take(now);
    const decided = plan(this.#inputs(now));
    const gone = new Set([...decided.stop, ...decided.pause]);
    for (const worker of this.#workers) {
      if (gone.has(worker.no)) this.#workerMs += now - worker.since;
      if (decided.close.includes(worker.no)) worker.isClosing = true;
    }
    this.#workers = this.#workers.filter(({ no }) => !gone.has(no));
    for (let n = 0; n < decided.start; n++) this.#start(now);
    return decided.lookAt;
  }

  #end(worker: Worker, now: number): void {
    const left = worker.ends.filter((at) => at > now);
    if (left.length < worker.ends.length && left.length === 0) worker.idleSince = Math.max(...worker.ends);
    worker.ends.splice(0, worker.ends.length, ...left);
  }

  #take(now: number): void {
    for (const worker of this.#workers) {
      if (worker.readyAt > now || worker.isClosing) continue;
      while (worker.ends.length < this.#facts.slots) {
        const job = this.queue.shift();
        if (!job) return;
        this.#waits.push(now - job.at);
        worker.ends.push(now + Math.max(1, job.runMs)); // what ends at once would end before it has begun
      }
    }
  }

  #start(now: number): void {
    const readyAt = now + this.#facts.startMs;
    this.#workers.push({ no: ++this.#starts, since: now, readyAt, idleSince: readyAt, isClosing: false, ends: [] });
  }

  #inputs(now: number): ScaleInputs {
    const waiting = this.queue.length;
    return {
      settings: this.#settings,
      version: 1,
      demand: {
        waiting,
        waitingNormal: waiting,
        running: this.#workers.reduce((sum, { ends }) => sum + ends.length, 0),
        oldestAt: this.queue[0]?.at,
      },
      workers: this.#workers.map((worker) => viewOf(worker, now)),
      slots: this.#facts.slots,
      failedStarts: 0,
      failedAt: undefined,
      fitsWithout: () => true,
      mayStart: () => Number.POSITIVE_INFINITY,
      flashBootMs: 0,
      now,
    };
  }
}

function viewOf({ no, readyAt, idleSince, isClosing, ends }: Worker, now: number): WorkerView {
  const state = isClosing ? "closing" : readyAt > now ? "starting" : ends.length > 0 ? "running" : "idle";
  return { no, state, held: ends.length, version: 1, idleSince };
}

function earliestAfter(now: number, times: readonly (number | undefined)[]): number | undefined {
  const later = times.flatMap((time) => (time !== undefined && time > now ? [time] : []));
  return later.length > 0 ? Math.min(...later) : undefined;
}
