import type { Duplex } from "node:stream";
import { realTime, type Timer } from "./clock.js";
import { limits } from "./limits/index.js";

/** The owner and the resource that work belongs to. Owners share the time, and an owner's resources take turns. */
export type Lane = readonly [who: string | number, what?: string | number];

type Work = () => void;

interface Waiting {
  readonly key: string;
  readonly work: Work[];
}

interface Owner {
  readonly lanes: Map<string | number, Waiting>;
  /** The time that it used, in milliseconds; it began level with the owner that was served then. */
  usedMs: number;
}

/** Work whose turn it is. */
interface Next {
  readonly who: string | number;
  readonly key: string;
  readonly work: Work;
}

/**
 * Work that waits. The owner who used the least time is served next. A new owner begins level with the one that is being
 * served, so that nobody saves up time. An owner's lanes take turns; a lane rests after long work.
 */
class Lanes {
  /** Includes those that have nothing waiting, but used more time than others. */
  readonly #owners = new Map<string | number, Owner>();
  #waiting = 0;
  /** The time that the owner had used who was served last. */
  #levelMs = 0;
  /** Until when lanes rest, by their keys. */
  readonly #rests = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#waiting === 0;
  }

  add([who, what = ""]: Lane, work: Work): void {
    this.#waiting++;
    const owner = this.#owners.get(who) ?? { lanes: new Map<string | number, Waiting>(), usedMs: this.#levelMs };
    this.#owners.set(who, owner);
    if (owner.lanes.size === 0) owner.usedMs = Math.max(owner.usedMs, this.#levelMs);
    const lane = owner.lanes.get(what);
    if (lane) lane.work.push(work);
    else owner.lanes.set(what, { key: `${who} ${what}`, work: [work] });
  }

  /** The next work; undefined if all lanes rest. */
  next(now: number): Next | undefined {
    let first: readonly [who: string | number, owner: Owner, lane: readonly [string | number, Waiting]] | undefined;
    for (const [who, owner] of this.#owners) {
      if (owner.lanes.size === 0 && owner.usedMs <= this.#levelMs) this.#owners.delete(who);
      if (first && owner.usedMs >= first[1].usedMs) continue;
      const lane = this.#firstOf(owner, now);
      if (lane) first = [who, owner, lane];
    }
    if (!first) return undefined;
    const [who, owner, [what, lane]] = first;
    this.#levelMs = Math.max(owner.usedMs, this.#levelMs);
    const work = lane.work.shift() as Work;
    this.#owners.delete(who);
    owner.lanes.delete(what);
    if (lane.work.length > 0) owner.lanes.set(what, lane); // now the last
    if (--this.#waiting > 0) this.#owners.set(who, owner);
    else this.#owners.clear(); // nobody waits: all are level again
    return { who, key: lane.key, work };
  }

  /** Counts the time that an owner's work took, but not all of a long stop of the process, which is nobody's work. */
  spend(who: string | number, ms: number): void {
    const owner = this.#owners.get(who);
    if (owner) owner.usedMs += Math.min(ms, limits.turnRestMsMax);
  }

  rest(key: string, now: number, ms: number): void {
    this.#forgetRested(now);
    this.#rests.set(key, now + ms);
  }

  /** When the first lane has rested; the present time if none rests. */
  rested(now: number): number {
    this.#forgetRested(now);
    return this.#rests.size === 0 ? now : Math.min(...this.#rests.values());
  }

  #forgetRested(now: number): void {
    for (const [key, until] of this.#rests) if (until <= now) this.#rests.delete(key);
  }

  #firstOf({ lanes }: Owner, now: number): readonly [string | number, Waiting] | undefined {
    for (const lane of lanes) if ((this.#rests.get(lane[1].key) ?? 0) <= now) return lane;
    return undefined;
  }
}

interface TurnsOptions {
  readonly now?: () => number;
  readonly after?: (ms: number, call: () => void) => Timer;
}

/**
 * Shares out the event loop. In each of its turns, work may begin until a time has passed; what is left begins in later
 * turns, so that other sockets and timers are served in between. Work should be short: what has begun is not interrupted.
 * After work that took a whole turn, its lane rests for as long as the work took: one caller's long steps, one after the
 * other, would otherwise delay each step of everybody else's requests.
 */
export class Turns {
  readonly #ms: number;
  readonly #now: () => number;
  readonly #after: (ms: number, call: () => void) => Timer;
  readonly #waiting = new Lanes();
  #endsAt = 0;
  #isTurnSet = false;
  #immediate: NodeJS.Immediate | undefined;
  /** Runs while all lanes rest. */
  #pause: Timer | undefined;

  /** `ms`: how long work may begin in a turn. */
  constructor(ms: number, { now = realTime.monotonicMs, after = realTime.after }: TurnsOptions = {}) {
    this.#ms = ms;
    this.#now = now;
    this.#after = after;
  }

  /** Whether no more work should begin in this turn. */
  get isOver(): boolean {
    if (!this.#isTurnSet) this.#setTurn();
    return !this.#waiting.isEmpty || this.#now() >= this.#endsAt;
  }

  /**
   * Resolves when work may begin; undefined if it may begin now. Who has `isOver` as false begins at once, without this:
   * awaiting `undefined` would let everybody else who asks in this turn begin as well.
   */
  take(lane: Lane): Promise<void> | undefined {
    return this.isOver ? new Promise((resolve) => this.wait(lane, resolve)) : undefined;
  }

  /** Does the work in a later turn, because this one is over. */
  wait(lane: Lane, work: Work): void {
    this.#waiting.add(lane, work);
    if (!this.#pause) return;
    realTime.cancel(this.#pause); // the new lane may not rest
    this.#setTurn();
  }

  /** Does work that blocks the thread now, or in a later turn, and returns its result. */
  async run<T>(lane: Lane, work: () => T): Promise<T> {
    if (this.isOver) await this.take(lane);
    return work();
  }

  #setTurn(): void {
    this.#pause = undefined;
    this.#isTurnSet = true;
    this.#endsAt = this.#now() + this.#ms;
    this.#immediate = setImmediate(this.#begin);
  }

  readonly #begin = (): void => {
    this.#isTurnSet = !this.#waiting.isEmpty;
    if (!this.#isTurnSet) return;
    this.#setTurn();
    this.#doNext();
  };

  /** One after the other, each with all the promises that it settles, whose work counts as its own. */
  #doNext(): void {
    const beganAt = this.#now();
    const next = this.#waiting.next(beganAt);
    if (!next) {
      this.#waitForRest(beganAt);
      return;
    }
    next.work();
    queueMicrotask(() => process.nextTick(this.#goOn, next, beganAt));
  }

  readonly #goOn = ({ who, key }: Next, beganAt: number): void => {
    const now = this.#now();
    const took = now - beganAt;
    this.#waiting.spend(who, took);
    if (took > this.#ms) this.#waiting.rest(key, now, Math.min(took, limits.turnRestMsMax));
    if (!this.#waiting.isEmpty && now < this.#endsAt) this.#doNext();
  };

  #waitForRest(now: number): void {
    const ms = this.#waiting.rested(now) - now;
    if (ms <= 0) return; // the turn that is set goes on
    clearImmediate(this.#immediate);
    this.#pause = this.#after(ms, () => this.#setTurn());
  }
}

/** The event loop of this process. */
export const turns = new Turns(limits.turnMs);

/**
 * Has a connection's bytes read in turns of the event loop, a few KiB at a time: hundreds of replies that arrive together,
 * or one with endless headers, take longer to parse than other requests should wait. Nothing more is read once the
 * connection is destroyed.
 */
export function readInTurns(socket: Duplex, lane: Lane): void {
  const emit = socket.emit.bind(socket);
  const read = socket.read.bind(socket);
  let isWaiting = false;
  /** Whether a slice was read since the reader was last called. */
  let hasRead = false;
  let wasDestroyed = false;
  /** Whether the reader has destroyed the connection: what it reads after that is thrown away. */
  let isCut = false;
  const goOn = (): boolean => {
    isWaiting = false;
    hasRead = false;
    wasDestroyed = socket.destroyed;
    const isHeard = withoutStacks(() => emit("readable"));
    if (socket.destroyed && !wasDestroyed) isCut = true;
    return isHeard;
  };
  const waitForTurn = (): void => {
    if (isWaiting) return; // that turn reads everything
    isWaiting = true;
    turns.wait(lane, () => isWaiting && goOn());
  };
  socket.read = (size?: number): Buffer | null => {
    if (socket.destroyed && !wasDestroyed) isCut = true;
    if (isCut) return null;
    if (hasRead && !wasDestroyed && socket.readableLength > 0 && turns.isOver) {
      waitForTurn();
      return null;
    }
    hasRead = true;
    // without a size, everything that has arrived would be joined
    return read(size ?? (socket.readableLength > limits.readSliceBytes ? limits.readSliceBytes : undefined));
  };
  socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === "readable") {
      if (!isWaiting && !turns.isOver) return goOn();
      waitForTurn();
      return true;
    }
    // what arrived before the connection ended belongs to the reply
    if (isWaiting && (event === "error" || event === "close")) goOn();
    return emit(event, ...args);
  };
}

/** Does work whose errors have no stacks: undici makes one for each header beyond its limit, thousands in a slice. */
function withoutStacks<T>(work: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
