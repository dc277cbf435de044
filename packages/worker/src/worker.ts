import { Connection } from "./connection.js";
import type { Handler, Job, ServeOptions, TakenJob } from "./handler/handler.js";
import { ChunkLine } from "./jobs/chunk-line.js";
import { type Outcome, runJob } from "./jobs/job-run.js";
import { Outbox } from "./jobs/outbox.js";
import { ProgressLine } from "./jobs/progress-line.js";
import { watchStops } from "./jobs/stops.js";
import { Takes } from "./jobs/takes.js";
import { limits } from "./limits.js";
import { type Log, logFailure, openLog } from "./log.js";
import { Bell } from "./pause.js";
import { Pings } from "./pings/pings.js";
import type { Settings } from "./settings.js";

/** A job from its take until the server has its result. */
interface HeldJob {
  readonly abort: AbortController;
  /** False once the handler is done and its result has to wait: then another job may run in its place. */
  isInSlot: boolean;
  isFreshWorkerWanted: boolean;
}

/** How a worker ended: it was asked to stop, or the server no longer knew it. */
export type Ending = "stopped" | "disowned";

/** One worker: takes jobs, runs them, reports them, until it is stopped. */
export class Worker {
  readonly #handler: Handler;
  readonly #options: ServeOptions;
  readonly #settings: Settings;
  readonly #logs: (jobId: string | null) => Log;
  readonly #log: Log;
  readonly #connection: Connection;
  readonly #outbox: Outbox;
  readonly #takes: Takes;
  readonly #pings: Pings;
  readonly #held = new Map<string, HeldJob>();
  readonly #changed = new Bell();
  readonly #stopping = new AbortController();
  readonly #over = new AbortController();
  #concurrency = 1;
  #ending: Ending = "stopped";
  #isWatchingStops = false;

  constructor(handler: Handler, options: ServeOptions, settings: Settings, logs = openLog) {
    const log = logs(null);
    this.#handler = handler;
    this.#options = options;
    this.#settings = settings;
    this.#logs = logs;
    this.#log = log;
    this.#connection = new Connection(settings.apiKey);
    const parts = { settings, connection: this.#connection, log, onRefused: () => this.#leave() };
    this.#outbox = new Outbox(parts);
    this.#takes = new Takes({ ...parts, stopping: this.#stopping.signal });
    this.#pings = new Pings({ ...parts, heldIds: () => [...this.#held.keys()] });
  }

  /** Works until it is stopped and its last result has arrived. */
  async run(): Promise<Ending> {
    this.#pings.start();
    await this.#takeJobs();
    while (this.#held.size > 0 && this.#ending === "stopped") await this.#changed.next();
    this.#over.abort();
    this.#pings.stop();
    this.#connection.close();
    return this.#ending;
  }

  /** Takes no more jobs, and lets running ones finish. */
  stop(): void {
    this.#stopping.abort();
    this.#changed.ring();
  }

  /** Stops, and tells the running handlers to give up. */
  stopJobs(): void {
    this.stop();
    for (const { abort } of this.#held.values()) abort.abort();
  }

  async #takeJobs(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const slots = this.#freeSlots();
      if (slots <= 0) {
        await this.#changed.next();
        continue;
      }
      const ask = { slots, isBatch: this.#concurrency > 1, isBusy: this.#held.size > 0 };
      this.#pings.noteAsking(true);
      const jobs = await this.#takes.next(ask);
      // All are noted as held before the first handler runs, because it may block this thread for long.
      const starts = jobs.flatMap((job) => this.#hold(job) ?? []);
      this.#pings.noteAsking(false);
      for (const start of starts) start();
    }
  }

  #freeSlots(): number {
    this.#concurrency = concurrencyOf(this.#options.concurrency, this.#concurrency, this.#log);
    if (this.#outbox.isFull) return 0;
    let taken = 0;
    for (const job of this.#held.values()) if (job.isInSlot) taken += 1;
    return Math.min(this.#concurrency - taken, limits.jobsHeldMax - this.#held.size);
  }

  /** Registers a job; returns a function that runs it. */
  #hold(taken: TakenJob): (() => void) | undefined {
    // Given a second time while it is still running here or its result is on the way: one result is enough.
    if (this.#held.has(taken.id)) return undefined;
    const held: HeldJob = { abort: new AbortController(), isInSlot: true, isFreshWorkerWanted: false };
    this.#held.set(taken.id, held);
    this.#pings.noteHeld(taken.id);
    return () => {
      void this.#runToEnd(taken, held);
      this.#watchStops();
    };
  }

  async #runToEnd(taken: TakenJob, held: HeldJob): Promise<void> {
    const log = this.#logs(taken.id);
    const url = this.#settings.doneUrl(taken.id, false);
    const progress = new ProgressLine({ connection: this.#connection, url, log });
    const outcome = await runJob({
      handler: this.#handler,
      input: taken.input,
      job: jobOf(taken, held, log, progress),
      aggregate: this.#options.aggregate === true,
      openChunks: () => this.#openChunks(taken.id, held, log),
    });
    progress.close();
    if (held.abort.signal.aborted) log.info("Stopped.");
    else if ("error" in outcome) logFailure(taken.id, outcome.error);
    if (held.isFreshWorkerWanted) this.stop();
    const body = resultBody(outcome, held.isFreshWorkerWanted);
    this.#outbox.add(
      { jobId: taken.id, body, isStream: outcome.isStream },
      { onDelayed: () => this.#freeSlot(held), onSettled: () => this.#forget(taken.id) },
    );
  }

  /** The result waits for the server, perhaps for long: meanwhile another job may run. */
  #freeSlot(held: HeldJob): void {
    held.isInSlot = false;
    this.#changed.ring();
  }

  #forget(jobId: string): void {
    this.#held.delete(jobId);
    this.#pings.noteOver(jobId);
    this.#changed.ring();
  }

  #openChunks(jobId: string, held: HeldJob, log: Log): ChunkLine {
    const url = this.#settings.streamUrl(jobId);
    return new ChunkLine({ connection: this.#connection, url, log, signal: held.abort.signal });
  }

  /** Polls for jobs to stop only from the first job on: one poll less makes the start shorter. */
  #watchStops(): void {
    if (this.#isWatchingStops) return;
    this.#isWatchingStops = true;
    const stop = (jobId: string) => {
      const held = this.#held.get(jobId);
      if (!held || held.abort.signal.aborted) return false;
      held.abort.abort();
      return true;
    };
    const { stopUrl: url } = this.#settings;
    void watchStops({ url, connection: this.#connection, signal: this.#over.signal, stop });
  }

  /** The server no longer knows this worker, and no client waits for its results. */
  #leave(): void {
    if (this.#ending === "disowned") return;
    this.#ending = "disowned";
    this.#log.error("The server no longer knows this worker: it stops, and drops its jobs and results.");
    this.stopJobs();
    this.#outbox.abandon();
  }
}

function jobOf(taken: TakenJob, held: HeldJob, log: Log, progress: ProgressLine): Job {
  const { id, webhook, s3Config, policy, traceparent } = taken;
  return {
    id,
    signal: held.abort.signal,
    log,
    ...(webhook !== undefined && { webhook }),
    ...(s3Config !== undefined && { s3Config }),
    ...(policy !== undefined && { policy }),
    ...(traceparent !== undefined && { traceparent }),
    progress: (value) => progress.add(value),
    refreshWorker: () => {
      held.isFreshWorkerWanted = true;
    },
  };
}

function resultBody(outcome: Outcome, isFreshWorkerWanted: boolean): string {
  const word = "error" in outcome ? `"error":${JSON.stringify(outcome.error)}` : `"output":${outcome.output}`;
  return `{${word}${isFreshWorkerWanted ? ',"stopPod":true' : ""}}`;
}

function concurrencyOf(wanted: ServeOptions["concurrency"], current: number, log: Log): number {
  try {
    const number = typeof wanted === "function" ? wanted(current) : (wanted ?? 1);
    if (Number.isFinite(number)) return Math.min(Math.max(Math.floor(number), 1), limits.jobsHeldMax);
    log.warn(`The concurrency must be a number, not ${number}: it stays ${current}.`);
  } catch (error) {
    log.warn(`The concurrency function failed, it stays ${current}:`, error);
  }
  return current;
}
