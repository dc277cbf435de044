import { PlainSignal } from "../clock.js";
import { type Habits, noHabits } from "../domain/jobs/prefetch.js";
import { type Heard, nothingHeard } from "../domain/workers/absence.js";
import type { Worker } from "../domain/workers/worker.js";

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
  /** How many failed starts before it were forgiven because it started well. */
  forgave: number;
  /** What is being done to start it, if it takes long and is done here. */
  doing?: string | undefined;
  /** Aborted when its polls must be answered at once. */
  dismissed: PlainSignal;
}

const isLive = ({ row }: LiveWorker): boolean => row.endedAt === undefined;

/** The workers in memory, by number, id and endpoint, including those that ended, until they are forgotten. */
export class LiveWorkers {
  readonly #byNo = new Map<number, LiveWorker>();
  readonly #nos = new Map<string, number>();
  readonly #byEndpoint = new Map<number, Set<LiveWorker>>();

  byNo = (no: number): LiveWorker | undefined => this.#byNo.get(no);
  byId(id: string): LiveWorker | undefined {
    const no = this.#nos.get(id);
    return no === undefined ? undefined : this.#byNo.get(no);
  }
  live = (): LiveWorker[] => [...this.#byNo.values()].filter(isLive);
  ended = (): LiveWorker[] => [...this.#byNo.values()].filter((worker) => !isLive(worker));
  /** An endpoint's workers that have not ended. */
  of = (endpointNo: number): LiveWorker[] => [...(this.#byEndpoint.get(endpointNo) ?? [])].filter(isLive);

  /** How many entries there are in all maps. */
  get size(): number {
    return this.#byNo.size + this.#nos.size + this.#byEndpoint.size;
  }

  admit(row: Worker, now: number): LiveWorker {
    const live: LiveWorker = {
      row,
      seenAt: now,
      busyAt: now, // after a restart, too, the idle timeout starts over
      polledAt: now,
      heard: nothingHeard,
      habits: noHabits,
      told: new Set(),
      polls: new Set(),
      unwritten: new Set(),
      dismissed: new PlainSignal(),
      mayHold: 0,
      asksFor: 0,
      forgave: 0,
    };
    this.#byNo.set(row.no, live);
    this.#nos.set(row.id, row.no);
    const peers = this.#byEndpoint.get(row.endpointNo) ?? new Set();
    this.#byEndpoint.set(row.endpointNo, peers.add(live));
    return live;
  }

  forget(endedBefore: number): void {
    for (const live of this.ended()) {
      const { no, id, endpointNo, endedAt = endedBefore } = live.row;
      if (endedAt > endedBefore) continue;
      this.#byNo.delete(no);
      this.#nos.delete(id);
      const peers = this.#byEndpoint.get(endpointNo);
      peers?.delete(live);
      if (peers?.size === 0) this.#byEndpoint.delete(endpointNo);
    }
  }
}
