import { type Connection, isPassing, type Reply } from "../connection.js";
import type { TakenJob } from "../handler/handler.js";
import { limits } from "../limits.js";
import type { Log } from "../log.js";
import { Backoff, pause } from "../pause.js";
import { type Settings, withParameters } from "../settings.js";

/** What a take asks for. */
interface Ask {
  readonly slots: number;
  /** True where several jobs may come in one answer. */
  readonly isBatch: boolean;
  /**
   * True while any job runs or any result waits for the server; otherwise the server would give those jobs to others.
   */
  readonly isBusy: boolean;
}

/** Asks the server for jobs, one poll at a time. */
export class Takes {
  readonly #settings: Settings;
  readonly #connection: Connection;
  readonly #log: Log;
  readonly #stopping: AbortSignal;
  readonly #onRefused: () => void;
  readonly #cut = new AbortController();
  readonly #backoff = new Backoff();
  #isAway = false;
  #unheldPolls = 0;

  constructor(parts: {
    settings: Settings;
    connection: Connection;
    log: Log;
    /** Aborted when the worker wants no more jobs. */
    stopping: AbortSignal;
    onRefused: () => void;
  }) {
    this.#settings = parts.settings;
    this.#connection = parts.connection;
    this.#log = parts.log;
    this.#stopping = parts.stopping;
    this.#onRefused = parts.onRefused;
    this.#stopping.addEventListener("abort", () => {
      // A server that stops its worker answers the poll itself. Disconnecting first could lose a job on its way.
      setTimeout(() => this.#cut.abort(), limits.lastTakeMs).unref();
    });
  }

  /** Polls once, and returns the jobs; none if there was nothing to do or no server, after a pause if one is due. */
  async next(ask: Ask): Promise<TakenJob[]> {
    const askedAt = performance.now();
    const reply = await this.#connection.call("GET", this.#url(ask), {
      signal: this.#cut.signal,
      silenceMaxMs: limits.pollSilenceMaxMs,
    });
    if (reply.status === 200) return this.#accept(reply);
    if (reply.status === 204) await this.#slowDown(performance.now() - askedAt);
    else if (reply.status === 401) this.#onRefused();
    else if (!this.#stopping.aborted) await this.#backOff(reply);
    return [];
  }

  #url({ slots, isBatch, isBusy }: Ask): string {
    const job_in_progress = isBusy ? "1" : "0";
    return isBatch
      ? withParameters(this.#settings.takeBatchUrl, { batch_size: String(slots), job_in_progress })
      : withParameters(this.#settings.takeUrl, { job_in_progress });
  }

  async #accept(reply: Reply): Promise<TakenJob[]> {
    try {
      const answer: unknown = JSON.parse(reply.text);
      const jobs = Array.isArray(answer) ? answer : [answer];
      if (!jobs.every(isJob)) throw new Error("a job without an id");
      this.#greet();
      return jobs;
    } catch (error) {
      await this.#backOff({ ...reply, text: `its answer was not a job: ${(error as Error).message}` });
      return [];
    }
  }

  /** After an empty answer it polls again at once, unless the server does not hold its polls. */
  async #slowDown(heldMs: number): Promise<void> {
    this.#greet();
    this.#unheldPolls = heldMs < limits.unheldPollMs ? this.#unheldPolls + 1 : 0;
    if (this.#unheldPolls > limits.unheldPollsMax) await pause(limits.pauseMinMs, this.#stopping);
  }

  async #backOff(reply: Reply): Promise<void> {
    if (!this.#isAway) {
      const reason = reply.status === 0 || isPassing(reply) ? "can't be reached" : "answers strangely";
      this.#log.warn(`The server ${reason} (${reply.status || reply.text}). Trying again.`);
    }
    this.#isAway = true;
    await pause(this.#backoff.nextMs(reply.retryAfterMs), this.#stopping);
  }

  #greet(): void {
    if (this.#isAway) this.#log.info("The server is back.");
    this.#isAway = false;
    this.#backoff.reset();
  }
}

function isJob(value: unknown): value is TakenJob {
  return typeof value === "object" && value !== null && "id" in value && typeof value.id === "string";
}
