import { limits } from "../../limits/index.js";
import type { Needs } from "../needs.js";

/** The header of a request passed on by another server, with the mark that proves it. */
export const passedOn = "x-millrace-passed-on";

/** What a mark is valid for. */
export interface Marked {
  /** The id of the endpoint or worker that is asked for. */
  readonly target: string;
  readonly method: string;
  /** The URL as in the request. */
  readonly url: string;
}

/**
 * Marks of requests that servers pass on to each other. A mark replaces the client's key, which the first server has
 * checked. It is valid for one request, at one server, for a few seconds, and is made with a key that only these
 * servers share.
 */
export class Marks {
  readonly #needs: Needs<"vault" | "ids" | "clock" | "here">;
  /** Used marks, of this period and the one before. */
  #used = new Set<string>();
  #usedBefore = new Set<string>();
  #periodEndsAt = 0;

  constructor(needs: Needs<"vault" | "ids" | "clock" | "here">) {
    this.#needs = needs;
  }

  /** A mark for a request to the server with this number. */
  make(serverNo: number, marked: Marked): string {
    const at = this.#needs.clock.now();
    const nonce = this.#needs.ids.secret(15);
    return `${serverNo}.${at}.${nonce}.${this.#sum(serverNo, at, nonce, marked)}`;
  }

  /** Whether one of our servers made this mark for this server and request, and it is used for the first time. */
  accept(mark: string, marked: Marked): boolean {
    const [, host, time, nonce = "", sum = ""] =
      /^(\d{1,15})\.(\d{1,15})\.([\w-]{20})\.([0-9a-f]{64})$/.exec(mark) ?? [];
    const [serverNo, at, now] = [Number(host), Number(time), this.#needs.clock.now()];
    if (serverNo !== this.#needs.here.server?.no || Math.abs(now - at) > limits.gateMarkMs) return false;
    if (!this.#needs.vault.equal(sum, this.#sum(serverNo, at, nonce, marked))) return false;
    return this.#useOnce(nonce, now);
  }

  #sum(serverNo: number, at: number, nonce: string, { target, method, url }: Marked): string {
    return this.#needs.vault.mac(JSON.stringify(["pass on", serverNo, at, nonce, target, method, url]));
  }

  #useOnce(nonce: string, now: number): boolean {
    if (now >= this.#periodEndsAt) {
      // a mark from a server whose clock is ahead is valid for twice as long
      const isLong = now >= this.#periodEndsAt + 2 * limits.gateMarkMs;
      this.#usedBefore = isLong ? new Set() : this.#used;
      this.#used = new Set();
      this.#periodEndsAt = now + 2 * limits.gateMarkMs;
    }
    if (this.#used.has(nonce) || this.#usedBefore.has(nonce) || this.#used.size >= limits.gateMarksMax) return false;
    this.#used.add(nonce);
    return true;
  }
}
