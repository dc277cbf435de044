import type { IncomingMessage } from "node:http";
import { realTime, type Timer } from "../../../clock.js";
import { Refusal } from "../../../errors.js";
import type { ArrivingText } from "../../../json/json.js";
import { limits } from "../../../limits/index.js";
import { refuseUnread, type Unread } from "./refuse-unread.js";

/** Bytes of bodies held in memory, in all and per owner. */
class Account {
  readonly #bytesMax: number;
  readonly #bytesOf = new Map<number, number>();
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
    const left = (this.#bytesOf.get(ownerNo) ?? 0) - bytes;
    if (left > 0) this.#bytesOf.set(ownerNo, left);
    else this.#bytesOf.delete(ownerNo);
  }
}

/** Clients' and workers' bodies are counted separately, so that neither causes the other to be refused. */
const accounts = { clients: new Account(limits.bodiesBytesMax), workers: new Account(limits.wordsBytesMax) };
export type Sender = keyof typeof accounts;

/** A worker treats a 4xx as final for its result, but sends the result again after a 503. */
const stalled: Record<Sender, Unread> = { clients: "ERR_HTTP_REQUEST_TIMEOUT", workers: "RESULT_STALLED" };

/** The bytes of bodies counted now. */
export const bodyBytesHeld = (sender: Sender): number => accounts[sender].bytes;

export const tooManyBodies = () =>
  new Refusal("UNAVAILABLE", "Too many large bodies are on their way; try again in a second.", {
    retryAfterSeconds: 1,
  });

/** The bytes that a request's body counts for and holds until it is released. */
export class CountedBody {
  readonly request: IncomingMessage;
  readonly #sender: Sender;
  readonly #account: Account;
  readonly #ownerNo: number;
  #length = 0;
  #counted = 0;
  #isReleased = false;
  #stop: (() => void) | undefined;
  /** How often the watch has looked since the last byte arrived. */
  looks = 0;
  text: ArrivingText | undefined;

  constructor(request: IncomingMessage, sender: Sender, ownerNo: number) {
    this.request = request;
    this.#sender = sender;
    this.#account = accounts[sender];
    this.#ownerNo = ownerNo;
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
    if (!this.#account.take(this.#ownerNo, more)) return false;
    this.#counted += more;
    return true;
  }

  /** The body is complete and can no longer stall. */
  end(): void {
    arriving.delete(this);
  }

  /** Refuses a body that has stalled; the rest, if it comes, is ignored. A worker sends its result again. */
  giveUp(): void {
    this.#stop?.();
    this.release();
    refuseUnread(stalled[this.#sender], this.request.socket);
  }

  /** The body is stored or refused: its bytes no longer count, even if the reply takes long. */
  release(): void {
    if (this.#counted > 0) this.#account.give(this.#ownerNo, this.#counted);
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

/** Looks at each arriving body once, and disconnects clients whose body has stalled. */
export function hangUpOnStalled(): void {
  for (const body of arriving) {
    if (body.looks++ < looksMax) continue;
    body.giveUp();
  }
  if (arriving.size > 0) return;
  realTime.cancel(watching);
  watching = undefined;
}
