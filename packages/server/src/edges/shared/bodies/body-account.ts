import type { IncomingMessage } from "node:http";
import { Refusal } from "../../../errors.js";
import type { PartedText } from "../../../json/json.js";
import { limits } from "../../../limits/index.js";
import { refuseUnread, type Unread } from "./refuse-unread.js";

/** Bytes of bodies that are held in memory: all together, and those of each owner. */
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

  /** Adds bytes; false where they are too many for all, or for one owner. */
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

/** Clients' bodies and workers' are counted apart, so that neither refuses the other. */
const accounts = { clients: new Account(limits.bodiesBytesMax), workers: new Account(limits.wordsBytesMax) };
export type Sender = keyof typeof accounts;

/** A worker takes a 4xx for the last word on its result, and sends it again after a 503. */
const stalled: Record<Sender, Unread> = { clients: "ERR_HTTP_REQUEST_TIMEOUT", workers: "RESULT_STALLED" };

/** Bytes of bodies that count now. */
export const bodyBytesHeld = (sender: Sender): number => accounts[sender].bytes;

export const tooManyBodies = () =>
  new Refusal("UNAVAILABLE", "Too many large bodies are on their way; try again in a second.", {
    retryAfterSeconds: 1,
  });

/** What a request's body counts, and holds, until it is released. */
export class CountedBody {
  readonly request: IncomingMessage;
  readonly #sender: Sender;
  readonly #account: Account;
  readonly #ownerNo: number;
  #length = 0;
  #counted = 0;
  #isReleased = false;
  #stop: (() => void) | undefined;
  /** How often the watch has looked since the last byte came. */
  looks = 0;
  text: PartedText | undefined;

  constructor(request: IncomingMessage, sender: Sender, ownerNo: number) {
    this.request = request;
    this.#sender = sender;
    this.#account = accounts[sender];
    this.#ownerNo = ownerNo;
  }

  /** It is read from now on: a client that stops sending it is hung up on, and `stop` must end the reading. */
  begin(stop: () => void): void {
    this.#stop = stop;
    arriving.add(this);
    watching ??= setInterval(hangUpOnStalled, limits.bodyStallMs / looksMax).unref();
  }

  /** Counts bytes that came; false where there are too many in memory. */
  count(bytes: number): boolean {
    this.looks = 0;
    if (this.#isReleased) return true; // what still comes is read away
    this.#length += bytes;
    if (this.#length <= limits.bodyBytesFree) return true;
    const more = this.#length - this.#counted;
    if (!this.#account.take(this.#ownerNo, more)) return false;
    this.#counted += more;
    return true;
  }

  /** All of it has come: it cannot stall any more. */
  end(): void {
    arriving.delete(this);
  }

  /** Refuses a body that has stalled: nothing is done with it, though its rest may still come. A worker sends it again. */
  giveUp(): void {
    this.#stop?.();
    this.release();
    refuseUnread(stalled[this.#sender], this.request.socket);
  }

  /** It is stored or refused: what it counted is free again, though the answer may take long. */
  release(): void {
    if (this.#counted > 0) this.#account.give(this.#ownerNo, this.#counted);
    this.#counted = 0;
    this.#isReleased = true;
    this.text?.drop();
    this.end();
  }
}

const arriving = new Set<CountedBody>();
let watching: NodeJS.Timeout | undefined;

/** Counted in looks, not by a clock: a process that was suspended must not take its clients for stalled ones. */
const looksMax = 6;

/** Looks at each body that is arriving once, and hangs up on clients whose body has stalled. */
export function hangUpOnStalled(): void {
  for (const body of arriving) {
    if (body.looks++ < looksMax) continue;
    body.giveUp();
  }
  if (arriving.size > 0) return;
  clearInterval(watching);
  watching = undefined;
}
