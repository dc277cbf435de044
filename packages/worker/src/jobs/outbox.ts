import { type Connection, isPassing, type Reply } from "../connection.js";
import { limits } from "../limits.js";
import type { Log } from "../log.js";
import { Backoff, pause } from "../pause.js";
import type { Settings } from "../settings.js";

/** A job's final report: the JSON text of its result, without the id. */
export interface Result {
  readonly jobId: string;
  readonly body: string;
  readonly isStream: boolean;
}

/** Callbacks for the progress of a result. */
export interface Hearing {
  /** The first try failed: the result is kept and retried. */
  onDelayed(): void;
  /** The server has accepted it, or never will. */
  onSettled(): void;
}

interface Entry extends Result {
  readonly bytes: number;
  readonly hearing: Hearing;
}

/**
 * Results on their way to the server. Results of the same turn go in one call; results that the server cannot accept
 * now are kept in memory and retried. Only results that the server refuses for good are dropped.
 */
export class Outbox {
  readonly #settings: Settings;
  readonly #connection: Pick<Connection, "call">;
  readonly #log: Log;
  readonly #onRefused: () => void;
  readonly #heldMaxBytes: number;
  readonly #backoff = new Backoff();
  readonly #closed = new AbortController();
  #waiting: Entry[] = [];
  #heldBytes = 0;
  #posts = 0;
  #isFlushPlanned = false;
  #isBackingOff = false;
  #isBatchKnown: boolean;

  constructor(parts: {
    settings: Settings;
    connection: Pick<Connection, "call">;
    log: Log;
    onRefused: () => void;
    heldMaxBytes?: number;
  }) {
    this.#settings = parts.settings;
    this.#connection = parts.connection;
    this.#log = parts.log;
    this.#onRefused = parts.onRefused;
    this.#heldMaxBytes = parts.heldMaxBytes ?? limits.resultsHeldMaxBytes;
    this.#isBatchKnown = parts.settings.doneBatchUrl !== undefined;
  }

  /** True while so much waits for the server that another job's result might not fit. */
  get isFull(): boolean {
    return this.#heldBytes >= this.#heldMaxBytes;
  }

  /** Sends a result as soon as the server accepts it. */
  add(result: Result, hearing: Hearing): void {
    const bytes = Buffer.byteLength(result.body);
    this.#heldBytes += bytes;
    this.#waiting.push({ ...result, bytes, hearing });
    this.#planFlush();
  }

  /** Drops the rest: the server no longer knows this worker. */
  abandon(): void {
    this.#closed.abort();
    for (const entry of this.#waiting.splice(0)) this.#settle(entry);
  }

  #planFlush(): void {
    if (this.#isFlushPlanned) return;
    this.#isFlushPlanned = true;
    setImmediate(() => {
      this.#isFlushPlanned = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#waiting.length > 0 && !this.#isBackingOff && this.#posts < limits.resultPostsMax) {
      void this.#post(this.#nextGroup());
    }
  }

  #nextGroup(): Entry[] {
    const room = this.#isBatchKnown ? limits.batchMaxResults : 1;
    let bytes = 0;
    let count = 0;
    for (const entry of this.#waiting) {
      bytes += entry.bytes;
      if (count > 0 && (count >= room || bytes > limits.batchMaxBytes)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #post(group: Entry[]): Promise<void> {
    this.#posts += 1;
    const reply = await this.#send(group);
    this.#posts -= 1;
    if (reply.status >= 200 && reply.status < 300) {
      this.#backoff.reset();
      for (const entry of group) this.#settle(entry);
    } else if (reply.status === 401) {
      for (const entry of group) this.#settle(entry);
      this.#onRefused();
    } else if (this.#closed.signal.aborted) {
      for (const entry of group) this.#settle(entry);
    } else if (isPassing(reply)) {
      this.#waiting.unshift(...group);
      for (const { hearing } of group) hearing.onDelayed();
      return this.#backOff(reply);
    } else this.#handleRefusal(group, reply);
    this.#flush();
  }

  #send(group: Entry[]): Promise<Reply> {
    const [first] = group as [Entry];
    if (group.length === 1)
      return this.#connection.call("POST", this.#settings.doneUrl(first.jobId, first.isStream), { body: first.body });
    const results = group.map(({ jobId, body }) => `{"id":${JSON.stringify(jobId)},${body.slice(1)}`);
    return this.#connection.call("POST", this.#settings.doneBatchUrl as string, { body: `[${results.join(",")}]` });
  }

  async #backOff(reply: Reply): Promise<void> {
    if (this.#isBackingOff) return;
    this.#isBackingOff = true;
    await pause(this.#backoff.nextMs(reply.retryAfterMs), this.#closed.signal);
    this.#isBackingOff = false;
    this.#flush();
  }

  #handleRefusal(group: Entry[], reply: Reply): void {
    if (group.length > 1) {
      // Either the server has no batched call, or one result spoils the rest: from now on each is sent alone.
      this.#isBatchKnown = false;
      this.#waiting.unshift(...group);
      return;
    }
    for (const entry of group) {
      this.#log.error(`The server refused the result of job ${entry.jobId} (${reply.status}): it is dropped.`);
      this.#settle(entry);
    }
  }

  #settle(entry: Entry): void {
    this.#heldBytes -= entry.bytes;
    entry.hearing.onSettled();
  }
}
