import { realTime } from "./clock.js";
import { limits } from "./limits/index.js";

/** The caller that work is done for, and the resource it concerns. Callers take turns, as do one caller's resources. */
export type Lane = readonly [who: string | number, what?: string | number];

type Work = () => void;

/** Work that waits, handed out in turn by lane. */
class Lanes {
  readonly #byWho = new Map<string | number, Map<string | number, Work[]>>();

  get isEmpty(): boolean {
    return this.#byWho.size === 0;
  }

  add([who, what = ""]: Lane, work: Work): void {
    const lanes = this.#byWho.get(who) ?? new Map<string | number, Work[]>();
    this.#byWho.set(who, lanes);
    const lane = lanes.get(what);
    if (lane) lane.push(work);
    else lanes.set(what, [work]);
  }

  next(): Work | undefined {
    for (const [who, lanes] of this.#byWho) {
      this.#byWho.delete(who);
      for (const [what, lane] of lanes) {
        const work = lane.shift();
        lanes.delete(what);
        if (lane.length > 0) lanes.set(what, lane); // now the last
        if (lanes.size > 0) this.#byWho.set(who, lanes);
        return work;
      }
    }
    return undefined;
  }
}

/**
 * Shares out the event loop. In each of its turns, work may begin until a time has passed; the rest begins in later
 * turns, so that other sockets and timers are served in between. Work should be short, because it is not interrupted.
 */
export class Turns {
  readonly #ms: number;
  readonly #now: () => number;
  readonly #waiting = new Lanes();
  #endsAt = 0;
  #isTurnSet = false;

  /** `ms`: how long work may begin in a turn. */
  constructor(ms: number, now: () => number = realTime.monotonicMs) {
    this.#ms = ms;
    this.#now = now;
  }

  /** Whether no more work should begin in this turn. */
  get isOver(): boolean {
    if (!this.#isTurnSet) {
      this.#isTurnSet = true;
      this.#endsAt = this.#now() + this.#ms;
      setImmediate(this.#begin);
    }
    return !this.#waiting.isEmpty || this.#now() >= this.#endsAt;
  }

  /** Resolves when work may begin; undefined if it may begin now. */
  take(lane: Lane): Promise<void> | undefined {
    return this.isOver ? new Promise((resolve) => this.wait(lane, resolve)) : undefined;
  }

  /** Does the work in a later turn, because this one is over. */
  wait(lane: Lane, work: Work): void {
    this.#waiting.add(lane, work);
  }

  /** Does work that blocks the thread now, or in a later turn, and returns its result. */
  async run<T>(lane: Lane, work: () => T): Promise<T> {
    await this.take(lane);
    return work();
  }

  readonly #begin = (): void => {
    this.#isTurnSet = !this.#waiting.isEmpty;
    if (!this.#isTurnSet) return;
    setImmediate(this.#begin);
    this.#endsAt = this.#now() + this.#ms;
    this.#doNext();
  };

  /** Does waiting work one piece at a time. Work of the promises that a piece settles counts towards that piece. */
  readonly #doNext = (): void => {
    this.#waiting.next()?.();
    queueMicrotask(() => process.nextTick(this.#goOn));
  };

  readonly #goOn = (): void => {
    if (!this.#waiting.isEmpty && this.#now() < this.#endsAt) this.#doNext();
  };
}

/** The event loop of this process. */
export const turns = new Turns(limits.turnMs);
