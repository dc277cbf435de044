import { type Connection, isPassing } from "../connection.js";
import { limits } from "../limits.js";
import type { Log } from "../log.js";
import { Backoff, Bell, pause } from "../pause.js";
import { withParameters } from "../settings.js";

/**
 * The chunks of one job on their way to the server, in order, one call at a time. The generator may run a little ahead.
 * A failed call is made again with the very same bytes and the same name, by which the server recognises a repeat, even
 * after its own restart. No other run has such a name.
 */
export class ChunkLine {
  readonly #connection: Connection;
  readonly #url: string;
  readonly #log: Log;
  readonly #signal: AbortSignal;
  readonly #moved = new Bell();
  readonly #run = crypto.randomUUID();
  #sent = 0;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #isSending = false;

  constructor(parts: { connection: Connection; url: string; log: Log; signal: AbortSignal }) {
    this.#connection = parts.connection;
    this.#url = parts.url;
    this.#log = parts.log;
    this.#signal = parts.signal;
    this.#signal.addEventListener("abort", () => this.#moved.ring());
  }

  /** Adds a chunk (JSON text); resolves when there is room for another. */
  async add(chunk: string): Promise<void> {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (!this.#isSending) void this.#sendAll();
    while (this.#isAhead && !this.#signal.aborted) await this.#moved.next();
  }

  /** Resolves when the server has every chunk, or the job was stopped. */
  async drained(): Promise<void> {
    while (this.#isSending && !this.#signal.aborted) await this.#moved.next();
  }

  get #isAhead(): boolean {
    return this.#waiting.length >= limits.chunksAheadMax || this.#waitingBytes >= limits.chunksAheadMaxBytes;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0 && !this.#signal.aborted) {
      const chunk = this.#waiting[0] as string;
      this.#sent += 1;
      const url = withParameters(this.#url, { chunk: `${this.#run}-${this.#sent}` });
      await this.#send(url, `{"output":${chunk}}`);
      this.#waiting.shift();
      this.#waitingBytes -= chunk.length;
      this.#moved.ring();
    }
    this.#isSending = false;
    this.#moved.ring();
  }

  async #send(url: string, body: string): Promise<void> {
    const backoff = new Backoff();
    while (!this.#signal.aborted) {
      const reply = await this.#connection.call("POST", url, { body });
      if (isPassing(reply)) await pause(backoff.nextMs(reply.retryAfterMs), this.#signal);
      else {
        if (reply.status >= 300) this.#log.warn(`The server refused a chunk (${reply.status}): it is skipped.`);
        return;
      }
    }
  }
}
