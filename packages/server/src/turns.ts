import type { Duplex } from "node:stream";
import { realTime, type Timer } from "./clock.js";
import { limits } from "./limits/index.js";

/** The owner and the resource that work belongs to. Owners take turns, and so do an owner's resources. */
export type Lane = readonly [who: string | number, what?: string | number];

type Work = () => void;

interface Waiting {
  readonly key: string;
  readonly work: Work[];
}

/** Work that waits, handed out in turn by lane. A lane whose work took long rests, so that others get their turns. */
class Lanes {
  readonly #byWho = new Map<string | number, Map<string | number, Waiting>>();
  /** Until when lanes rest, by their keys. */
  readonly #rests = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#byWho.size === 0;
  }

  add([who, what = ""]: Lane, work: Work): void {
    const lanes = this.#byWho.get(who) ?? new Map<string | number, Waiting>();
    this.#byWho.set(who, lanes);
    const lane = lanes.get(what);
    if (lane) lane.work.push(work);
    else lanes.set(what, { key: `${who} ${what}`, work: [work] });
  }

  /** The next work, and its lane's key; undefined if all lanes rest. */
  next(now: number): { readonly key: string; readonly work: Work } | undefined {
    for (const [who, lanes] of this.#byWho) {
      for (const [what, lane] of lanes) {
        if (this.#isResting(lane.key, now)) continue;
        this.#byWho.delete(who);
        lanes.delete(what);
        const work = lane.work.shift() as Work;
        if (lane.work.length > 0) lanes.set(what, lane); // now the last
        if (lanes.size > 0) this.#byWho.set(who, lanes);
        return { key: lane.key, work };
      }
    }
    return undefined;
  }

  rest(key: string, until: number): void {
    this.#rests.set(key, until);
  }

  /** When the first lane has rested; the present time if none rests. */
  rested(now: number): number {
    for (const [key, until] of this.#rests) if (until <= now) this.#rests.delete(key);
    return this.#rests.size === 0 ? now : Math.min(...this.#rests.values());
  }

  #isResting(key: string, now: number): boolean {
    return (this.#rests.get(key) ?? 0) > now;
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
    queueMicrotask(() => process.nextTick(this.#goOn, next.key, beganAt));
  }

  readonly #goOn = (key: string, beganAt: number): void => {
    const now = this.#now();
    const took = now - beganAt;
    if (took > this.#ms) this.#waiting.rest(key, now + Math.min(took, limits.turnRestMsMax));
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
    const isHeard = emit("readable");
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
