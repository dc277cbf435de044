import { limits } from "../limits.js";
import type { Ask, Taken, TakenJob } from "../store.js";

/** One worker's poll, standing in the line of its endpoint. */
interface Poll {
  readonly workerNo: number;
  readonly count: number;
  readonly settle: (jobs: TakenJob[]) => void;
  /** Whether it may be answered with jobs: false once its time is over or its client is gone. */
  open: boolean;
}

export interface TakeLineParts {
  /** One store call for all who stand in the line. */
  readonly take: (asks: readonly Ask[]) => Promise<Taken>;
  /** When a worker last held a job: the most recently busy one is served first, so that the others may go. */
  readonly busyAt: (workerNo: number) => number;
  readonly onError: (error: unknown) => void;
}

/**
 * Workers that ask for jobs of one endpoint. A line takes one turn at a time; a ring during a turn means one turn more;
 * a line known to be dry asks nothing.
 */
export class TakeLine {
  readonly #parts: TakeLineParts;
  readonly #polls = new Map<number, Poll>();
  #turning = false;
  #again = false;
  #dry = false;

  constructor(parts: TakeLineParts) {
    this.#parts = parts;
  }

  get standing(): number {
    return this.#polls.size;
  }

  /** A job may be waiting. */
  ring(): void {
    this.#dry = false;
    if (this.#turning) this.#again = true;
    else if (this.#polls.size > 0) void this.#turn();
  }

  /** Stands until jobs come or `ended` says that the time is over; a worker has one place in the line. */
  stand(workerNo: number, count: number): { jobs: Promise<TakenJob[]>; leave: () => void } {
    this.#polls.get(workerNo)?.settle([]);
    let settle: (jobs: TakenJob[]) => void = () => {};
    const jobs = new Promise<TakenJob[]>((resolve) => {
      settle = resolve;
    });
    const poll: Poll = {
      workerNo,
      count,
      open: true,
      settle: (found) => {
        if (this.#polls.get(workerNo) === poll) this.#polls.delete(workerNo);
        settle(found);
      },
    };
    this.#polls.set(workerNo, poll);
    if (!this.#dry) this.ring();
    const leave = () => {
      poll.open = false;
      // while its turn is on the way, the turn settles it: jobs may already be its own
      if (!this.#turning) poll.settle([]);
    };
    return { jobs, leave };
  }

  async #turn(): Promise<void> {
    this.#turning = true;
    try {
      do {
        this.#again = false;
        const polls = [...this.#polls.values()]
          .filter((poll) => poll.open)
          .sort((a, b) => this.#parts.busyAt(b.workerNo) - this.#parts.busyAt(a.workerNo));
        if (polls.length === 0) break;
        await this.#serve(polls);
      } while (this.#again);
    } catch (error) {
      this.#parts.onError(error);
      setTimeout(() => this.ring(), limits.waitMsMin).unref();
    } finally {
      this.#turning = false;
      for (const poll of [...this.#polls.values()]) if (!poll.open) poll.settle([]);
    }
  }

  async #serve(polls: readonly Poll[]): Promise<void> {
    const { jobs, dry } = await this.#parts.take(polls.map(({ workerNo, count }) => ({ workerNo, count })));
    for (const poll of polls) {
      const own = jobs.filter((job) => job.workerNo === poll.workerNo);
      if (own.length > 0) poll.settle(own);
    }
    if (dry) this.#dry = !this.#again;
    else if (jobs.length > 0) this.#again = this.#polls.size > 0;
  }
}
