import type { Clock } from "../clock.js";
import { limits } from "../limits/index.js";
import type { Ask, Taken, TakenJob } from "../store/index.js";

/** A worker's poll, waiting in the line of its endpoint. */
interface Poll {
  readonly workerNo: number;
  readonly count: number;
  readonly settle: (jobs: TakenJob[]) => void;
  /**
   * Whether jobs may be asked for on its behalf: false once its time is over, its client is gone, or a newer poll
   * replaced it.
   */
  open: boolean;
  /** Whether a turn under way asks on its behalf: jobs may already be assigned to it. */
  inTurn: boolean;
}

export interface TakeLineParts {
  readonly clock: Pick<Clock, "after">;
  /** One store call for everyone in the line. */
  readonly take: (asks: readonly Ask[]) => Promise<Taken>;
  /**
   * When a worker last held a job. The most recently busy one is served first, so that the others become idle; 0 comes
   * last.
   */
  readonly busyAt: (workerNo: number) => number;
  /** Whether a worker may get jobs; if absent, all may. A closed worker may stay in the line until its poll ends. */
  readonly mayTake?: (workerNo: number) => boolean;
  readonly onError: (error: unknown) => void;
  /** Called when jobs may be waiting and no worker in the line may take them. */
  readonly onLeft?: () => void;
}

/**
 * Workers that ask for one endpoint's jobs. A line takes one turn at a time, and a ring during a turn causes one more.
 * A line known to be dry asks for nothing.
 */
export class TakeLine {
  readonly #parts: TakeLineParts;
  readonly #polls = new Map<number, Poll>(); // by worker
  #turning = false;
  #again = false;
  #dry = false;

  constructor(parts: TakeLineParts) {
    this.#parts = parts;
  }

  get standing(): number {
    return this.#polls.size;
  }

  /** Whether a worker in the line may take a job. */
  get canServe(): boolean {
    const { mayTake = () => true } = this.#parts;
    for (const { open, workerNo } of this.#polls.values()) if (open && mayTake(workerNo)) return true;
    return false;
  }

  /** Says that a job may be waiting. */
  ring(): void {
    this.#dry = false;
    if (this.#turning) this.#again = true;
    else if (this.#polls.size > 0) void this.#turn();
  }

  /** Waits until jobs come or `leave` is called. A worker has one place in the line, for its newest poll. */
  stand(workerNo: number, count: number): { jobs: Promise<TakenJob[]>; leave: () => void } {
    const former = this.#polls.get(workerNo);
    if (former) this.#leave(former);
    let resolve: (jobs: TakenJob[]) => void = () => {};
    const jobs = new Promise<TakenJob[]>((settle) => {
      resolve = settle;
    });
    const settle = (found: TakenJob[]) => {
      if (this.#polls.get(workerNo) === poll) this.#polls.delete(workerNo);
      resolve(found);
    };
    const poll: Poll = { workerNo, count, settle, open: true, inTurn: false };
    this.#polls.set(workerNo, poll);
    if (!this.#dry) this.ring();
    return { jobs, leave: () => this.#leave(poll) };
  }

  #leave(poll: Poll): void {
    poll.open = false;
    if (!poll.inTurn) poll.settle([]); // otherwise the turn settles it
  }

  async #turn(): Promise<void> {
    this.#turning = true;
    try {
      do {
        this.#again = false;
        const polls = [...this.#polls.values()]
          .filter((poll) => poll.open)
          .sort((a, b) => this.#parts.busyAt(b.workerNo) - this.#parts.busyAt(a.workerNo))
          .slice(0, limits.turnAsksMax);
        if (polls.length === 0) break;
        await this.#serve(polls);
      } while (this.#again);
    } catch (error) {
      this.#parts.onError(error);
      this.#parts.clock.after(limits.waitMsMin, () => this.ring());
    } finally {
      this.#turning = false;
    }
  }

  async #serve(polls: readonly Poll[]): Promise<void> {
    for (const poll of polls) poll.inTurn = true;
    try {
      const { jobs, dry } = await this.#parts.take(polls.map(({ workerNo, count }) => ({ workerNo, count })));
      for (const poll of polls) {
        const own = jobs.filter((job) => job.workerNo === poll.workerNo);
        if (own.length > 0) poll.settle(own);
      }
      if (dry) this.#dry = !this.#again;
      else if (jobs.length > 0) this.#again = this.#polls.size > 0;
      if (!dry && !this.canServe) this.#parts.onLeft?.();
    } finally {
      for (const poll of polls) {
        poll.inTurn = false;
        if (!poll.open) poll.settle([]);
      }
    }
  }
}
