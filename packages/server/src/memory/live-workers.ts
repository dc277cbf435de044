import { PlainSignal } from "../clock.js";
import type { StartNote } from "../domain/hosts/server.js";
import { type Habits, noHabits } from "../domain/jobs/prefetch.js";
import { type Heard, nothingHeard } from "../domain/workers/absence.js";
import { neverRan, type Worker } from "../domain/workers/worker.js";
import { Endings } from "./endings.js";

/** What this server knows of a worker beyond its row. Not kept across restarts of the server. */
export interface LiveWorker {
  row: Worker;
  /** When it last called in any way; after our start, the time of the start. */
  seenAt: number;
  /** When it last held a job, or became ready. */
  busyAt: number;
  /** When it last asked for jobs, or such a poll ended. */
  polledAt: number;
  heard: Heard;
  /** How it takes its jobs. */
  habits: Habits;
  /** Stops of jobs that it was already told about. */
  readonly told: Set<string>;
  /** Its polls that are held now. */
  readonly polls: Set<{ readonly arrivedAt: number }>;
  /** Ids of jobs on their way to it: taken, but the reply is not written yet. */
  readonly unwritten: Set<string>;
  /** How many jobs it may hold at most: what it was known to hold, and all that it was given since. */
  mayHold: number;
  /** How many jobs its held polls ask for. */
  asksFor: number;
  /** Secrets of its jobs that are noted: its log must not show them. */
  notedSecrets?: Set<string>;
  /** How many failed starts before it were forgiven because it started well. */
  forgave: number;
  /** What is being done to start it, if it takes long and is done here. */
  doing?: string | undefined;
  /** What the server that starts it says, if that is another one. */
  startElsewhere?: StartNote | undefined;
  /** Since when it has been without a node of its cluster. */
  unplacedSince?: number | undefined;
  /** Since when its cluster has had no room for it, and none in sight. */
  fullSince?: number | undefined;
  /** Aborted when its polls must be answered at once. */
  dismissed: PlainSignal;
}

/** What is being done to start a worker, here or by another server. */
export const startOf = ({ doing, fullSince, startElsewhere }: LiveWorker): StartNote | undefined =>
  doing === undefined ? startElsewhere : { doing, isFull: fullSince !== undefined };

/** What is told of an endpoint whose workers start: if one has a place, that it starts, and not that others have none. */
export function startAmong(workers: readonly LiveWorker[]): StartNote | undefined {
  const starts = workers.flatMap((worker) => startOf(worker) ?? []);
  return starts.find(({ isFull }) => !isFull) ?? starts[0];
}

/** An endpoint's workers: thousands may have ended in a day, and most looks are for the others. */
class Peers {
  readonly live = new Set<LiveWorker>();
  readonly ended = new Set<LiveWorker>();
}

/** The workers in memory, by number, id and endpoint, including those that ended, until they are forgotten. */
export class LiveWorkers {
  readonly #byNo = new Map<number, LiveWorker>();
  readonly #nos = new Map<string, number>();
  readonly #byEndpoint = new Map<number, Peers>();
  readonly #all = new Peers();
  readonly endings = new Endings<LiveWorker>();

  byNo = (no: number): LiveWorker | undefined => this.#byNo.get(no);
  byId(id: string): LiveWorker | undefined {
    const no = this.#nos.get(id);
    return no === undefined ? undefined : this.#byNo.get(no);
  }
  live = (): LiveWorker[] => [...this.#all.live];
  /** Without a copy: a day's workers may be very many. */
  ended = (): ReadonlySet<LiveWorker> => this.#all.ended;
  /** An endpoint's workers that have not ended. */
  of = (endpointNo: number): LiveWorker[] => [...(this.#byEndpoint.get(endpointNo)?.live ?? [])];
  endedOf = (endpointNo: number): ReadonlySet<LiveWorker> => this.#byEndpoint.get(endpointNo)?.ended ?? none;

  /** How many entries there are in all maps. */
  get size(): number {
    return this.#byNo.size + this.#nos.size + this.#byEndpoint.size;
  }

  admit(row: Worker, now: number): LiveWorker {
    const live = new Kept(row, now, this.#sort);
    this.#byNo.set(row.no, live);
    this.#nos.set(row.id, row.no);
    return live;
  }

  /** Puts a worker among those that live or that have ended. */
  readonly #sort = (worker: LiveWorker): void => {
    const { endpointNo, endedAt } = worker.row;
    const peers = this.#byEndpoint.get(endpointNo) ?? new Peers();
    this.#byEndpoint.set(endpointNo, peers);
    for (const { live, ended } of [peers, this.#all]) {
      const [from, to] = endedAt === undefined ? [ended, live] : [live, ended];
      from.delete(worker);
      to.add(worker);
    }
    if (endedAt !== undefined) this.endings.add(worker, endedAt);
  };

  /** Forgets workers that ended before a time, and those of which nothing ran that ended before another time. */
  forget(endedBefore: number, neverRanBefore = endedBefore): void {
    for (const worker of this.#all.ended) {
      const { no, id, endpointNo, endedAt = endedBefore } = worker.row;
      if (endedAt > (neverRan(worker.row) ? neverRanBefore : endedBefore)) continue;
      this.#byNo.delete(no);
      this.#nos.delete(id);
      this.#all.ended.delete(worker);
      const peers = this.#byEndpoint.get(endpointNo);
      peers?.ended.delete(worker);
      if (peers && peers.live.size + peers.ended.size === 0) this.#byEndpoint.delete(endpointNo);
    }
    this.endings.keep(this.#all.ended);
  }
}

const none: ReadonlySet<LiveWorker> = new Set();

/** A worker that is sorted anew when its row is replaced by one that has ended, or that has not after all. */
class Kept implements LiveWorker {
  #row: Worker;
  readonly #sort: (worker: LiveWorker) => void;
  seenAt: number;
  busyAt: number; // after a restart, too, the idle timeout starts over
  polledAt: number;
  heard = nothingHeard;
  habits = noHabits;
  readonly told = new Set<string>();
  readonly polls = new Set<{ readonly arrivedAt: number }>();
  readonly unwritten = new Set<string>();
  mayHold = 0;
  asksFor = 0;
  forgave = 0;
  doing: string | undefined = undefined;
  startElsewhere: StartNote | undefined = undefined;
  unplacedSince: number | undefined = undefined;
  fullSince: number | undefined = undefined;
  dismissed = new PlainSignal();

  constructor(row: Worker, now: number, sort: (worker: LiveWorker) => void) {
    this.#row = row;
    this.#sort = sort;
    this.seenAt = this.busyAt = this.polledAt = now;
    sort(this);
  }

  get row(): Worker {
    return this.#row;
  }
  set row(next: Worker) {
    const hasTurned = this.#row.endedAt !== next.endedAt;
    this.#row = next;
    if (hasTurned) this.#sort(this);
  }
}
