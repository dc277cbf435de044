import { PlainSignal } from "../clock.js";
import { type Habits, noHabits } from "../domain/jobs/prefetch.js";
import { type Heard, nothingHeard } from "../domain/workers/absence.js";
import type { Worker } from "../domain/workers/worker.js";

/** What this server knows of a worker beyond its row: begun anew at each start. */
export interface LiveWorker {
  row: Worker;
  /** Its last call of any kind; at our start, now. */
  seenAt: number;
  /** When it last held a job, or became ready. */
  busyAt: number;
  /** When it last asked for jobs, or such a poll ended. */
  polledAt: number;
  heard: Heard;
  /** How it takes its jobs. */
  habits: Habits;
  /** Jobs it was already told to stop. */
  readonly told: Set<string>;
  /** How many of its polls are held now. */
  readonly polls: Set<{ readonly arrivedAt: number }>;
  /** Jobs on their way to it: taken, but the answer is not yet written. */
  readonly unwritten: Set<string>;
  /** How many failed starts before it were forgiven because it came up. */
  forgave: number;
  /** What is being done to start it, where that takes long and is done here. */
  doing?: string | undefined;
  /** Set when its polls are to be answered at once. */
  dismissed: PlainSignal;
}

const isLive = ({ row }: LiveWorker): boolean => row.endedAt === undefined;

/** The workers in memory, by their number, their id and their endpoint; also those that ended, until they are forgotten. */
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
  /** An endpoint's, that have not ended. */
  of = (endpointNo: number): LiveWorker[] => [...(this.#byEndpoint.get(endpointNo) ?? [])].filter(isLive);

  /** How many entries there are, of all kinds. */
  get size(): number {
    return this.#byNo.size + this.#nos.size + this.#byEndpoint.size;
  }

  admit(row: Worker, now: number): LiveWorker {
    const live: LiveWorker = {
      row,
      seenAt: now,
      busyAt: now, // a whole idle time after a restart, too
      polledAt: now,
      heard: nothingHeard,
      habits: noHabits,
      told: new Set(),
      polls: new Set(),
      unwritten: new Set(),
      dismissed: new PlainSignal(),
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
