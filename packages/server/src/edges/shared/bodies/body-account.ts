import type { IncomingMessage } from "node:http";
import { realTime, type Timer } from "../../../clock.js";
import type { ArrivingText } from "../../../json/json.js";
import { limits } from "../../../limits/index.js";
import type { Reading } from "./pace.js";
import { refuseUnread, type Unread } from "./refuse-unread.js";

/** Bytes of bodies held in memory, in all and per owner. */
class Account {
  readonly #bytesMax: number;
  readonly #bytesOf = new Map<number, number>();
  /** Of those, the bytes of whole bodies, which will soon be stored. */
  readonly #wholeOf = new Map<number, number>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes; false if they are too many in all or for this owner. */
  take(ownerNo: number, bytes: number): boolean {
    const owned = (this.#bytesOf.get(ownerNo) ?? 0) + bytes;
    if (this.#bytes + bytes > this.#bytesMax || owned > limits.bodiesOwnerShare * this.#bytesMax) return false;
    this.#bytes += bytes;
    this.#bytesOf.set(ownerNo, owned);
    return true;
  }

  give(ownerNo: number, bytes: number): void {
    this.#bytes -= bytes;
    add(this.#bytesOf, ownerNo, -bytes);
  }

  /** Notes that bytes which were taken are those of a whole body, or are so no longer. */
  whole = (ownerNo: number, bytes: number): void => add(this.#wholeOf, ownerNo, bytes);

  /**
   * How an owner's bodies may be read on. While they hold much, one at a time, so that it ends before there is no room
   * left; and none while some of them are about to be stored, which makes room.
   */
  manner(ownerNo: number): Reading["manner"] {
    const { bodiesOwnerShare, bodiesCrowdedShare } = limits;
    const owned = this.#bytesOf.get(ownerNo) ?? 0;
    const isCrowded =
      owned > bodiesCrowdedShare * bodiesOwnerShare * this.#bytesMax ||
      (owned > 0 && this.#bytes > bodiesOwnerShare * this.#bytesMax);
    if (!isCrowded) return "freely";
    return this.#wholeOf.has(ownerNo) ? "not now" : "one by one";
  }
}

function add(sums: Map<number, number>, ownerNo: number, bytes: number): void {
  const sum = (sums.get(ownerNo) ?? 0) + bytes;
  if (sum > 0) sums.set(ownerNo, sum);
  else sums.delete(ownerNo);
}

/** Clients' and workers' bodies are counted separately, so that neither causes the other to be refused. */
const accounts = { clients: new Account(limits.bodiesBytesMax), workers: new Account(limits.wordsBytesMax) };
export type Sender = keyof typeof accounts;

/** A worker treats a 4xx as final for its result, but sends the result again after a 503. */
const stalled: Record<Sender, Unread> = { clients: "ERR_HTTP_REQUEST_TIMEOUT", workers: "RESULT_STALLED" };

/** The bytes of bodies counted now. */
export const bodyBytesHeld = (sender: Sender): number => accounts[sender].bytes;

/** The bytes that a request's body counts for and holds until it is released. */
export class CountedBody implements Reading {
  readonly request: IncomingMessage;
  readonly ownerNo: number;
  readonly #sender: Sender;
  readonly #account: Account;
  readonly #announced: number;
  #length = 0;
  #counted = 0;
  #isWhole = false;
  #isReleased = false;
  #stop: (() => void) | undefined;
  /** How often the watch has looked since the last byte arrived. */
  looks = 0;
  text: ArrivingText | undefined;

  constructor(request: IncomingMessage, sender: Sender, ownerNo: number) {
    this.request = request;
    this.#announced = Number(request.headers["content-length"] ?? Number.POSITIVE_INFINITY);
    this.#sender = sender;
    this.#account = accounts[sender];
    this.ownerNo = ownerNo;
  }

  /** Reading begins: from now on a client that stops sending is disconnected. `stop` must end the reading. */
  begin(stop: () => void): void {
    this.#stop = stop;
    arriving.add(this);
    watching ??= realTime.every(limits.bodyStallMs / looksMax, hangUpOnStalled).unref();
  }

  /** Counts bytes that arrived; false if there are too many in memory. */
  count(bytes: number): boolean {
    this.looks = 0;
    if (this.#isReleased) return true; // the rest is discarded
    this.#length += bytes;
    if (this.#length <= limits.bodyBytesFree) return true;
    const more = this.#length - this.#counted;
    if (!this.#account.take(this.ownerNo, more)) return false;
    this.#counted += more;
    return true;
  }

  get left(): number {
    return this.#announced - this.#length;
  }

  get manner(): Reading["manner"] {
    return this.#account.manner(this.ownerNo);
  }

  /** The body is complete and can no longer stall. */
  end(): void {
    arriving.delete(this);
    if (this.#isWhole || this.#counted === 0) return;
    this.#isWhole = true;
    this.#account.whole(this.ownerNo, this.#counted);
  }

  /** Whether it is not read on because others are. */
  get isHeldUp(): boolean {
    return this.request.isPaused();
  }

  /** Refuses a body that has stalled; the rest, if it comes, is ignored. A worker sends its result again. */
  giveUp(): void {
    const why = this.isHeldUp ? "BODY_HELD_UP" : stalled[this.#sender];
    this.#stop?.();
    this.release();
    refuseUnread(why, this.request.socket);
  }

  /** The body is stored or refused: its bytes no longer count, even if the reply takes long. */
  release(): void {
    if (this.#counted > 0) this.#account.give(this.ownerNo, this.#counted);
    if (this.#isWhole) this.#account.whole(this.ownerNo, -this.#counted);
    this.#isWhole = false;
    this.#counted = 0;
    this.#isReleased = true;
    this.text?.drop();
    this.end();
  }
}

const arriving = new Set<CountedBody>();
let watching: Timer | undefined;

/** Measured in looks, not by a clock: after a suspension of the process, clients must not count as stalled. */
const looksMax = 6;
/** The same for a body that we do not read on: most are read after some seconds. */
const heldUpLooksMax = 2 * looksMax;

/** Looks at each arriving body once, and disconnects clients whose body has stalled. */
export function hangUpOnStalled(): void {
  for (const body of arriving) {
    if (body.looks++ < (body.isHeldUp ? heldUpLooksMax : looksMax)) continue;
    body.giveUp();
  }
  if (arriving.size > 0) return;
  realTime.cancel(watching);
  watching = undefined;
}
