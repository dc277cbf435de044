import type { Worker as Thread, WorkerOptions } from "node:worker_threads";
import type { Connection } from "../connection.js";
import type { Settings } from "../settings.js";
import { HeldList } from "./held-list.js";
import { Pinger, type PingTarget } from "./pinger.js";

interface Parts {
  readonly settings: Settings;
  readonly connection: Connection;
  /** The jobs that this worker holds: running, or with a result that the server does not have yet. */
  heldIds(): string[];
  onRefused(): void;
}

/** What the thread gets at its start. */
export interface ThreadStart {
  readonly target: PingTarget;
  readonly apiKey: string;
  /** Of the `HeldList`. */
  readonly memory: SharedArrayBuffer;
}

/** A message of the thread: the server refuses its calls, or a question whether the main thread is awake. */
export type ThreadWord = "refused" | { readonly question: number };

/**
 * Tells the server every few seconds that this worker is alive, and which jobs it holds. From the first job on, a
 * thread does that, so that a worker does not look lost while its handler computes for long. Until then, or if there
 * is no such thread, the main thread does.
 */
export class Pings {
  readonly #parts: Parts;
  readonly #target: PingTarget;
  readonly #pinger: Pinger;
  readonly #held = new HeldList();
  #timer: NodeJS.Timeout | undefined;
  #thread: Thread | undefined;
  #isThreadTried = false;
  #isThreadUp = false;
  #isPinging = false;

  constructor(parts: Parts) {
    const { pingUrl, doneBatchUrl, pingIntervalMs } = parts.settings;
    this.#parts = parts;
    this.#target = { pingUrl, doneBatchUrl, pingIntervalMs };
    this.#pinger = new Pinger({ target: this.#target, connection: parts.connection, onRefused: parts.onRefused });
  }

  start(): void {
    if (!this.#target.pingUrl) return;
    this.#timer = setInterval(() => void this.#ping(), this.#target.pingIntervalMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopThread();
  }

  /** Notes whether a take is open. Jobs that it brought must be noted before its end is. */
  noteAsking(isAsking: boolean): void {
    this.#held.isAsking = isAsking;
  }

  /** Notes a job as held; call it before its handler runs, which may block this thread for long. */
  noteHeld(id: string): void {
    if (this.#held.add(id)) this.#startThread();
    else this.#stopThread();
  }

  /** Notes that a job is over and the server has its result. */
  noteOver(id: string): void {
    this.#held.delete(id);
  }

  async #ping(): Promise<void> {
    if (this.#isThreadUp || this.#isPinging) return;
    this.#isPinging = true;
    await this.#pinger.ping(this.#parts.heldIds());
    this.#isPinging = false;
  }

  #startThread(): void {
    if (this.#isThreadTried || !this.#target.pingUrl) return;
    this.#isThreadTried = true;
    try {
      const thread = openThread({
        target: this.#target,
        apiKey: this.#parts.settings.apiKey,
        memory: this.#held.memory,
      });
      thread.unref();
      thread.on("message", (word: ThreadWord) => this.#hear(word));
      thread.on("online", () => {
        this.#isThreadUp = true;
      });
      // Whatever ended the thread, this thread pings again.
      thread.on("error", () => this.#loseThread());
      thread.on("exit", () => this.#loseThread());
      this.#thread = thread;
    } catch {
      this.#loseThread();
    }
  }

  /** Stops it for good: its list would be incomplete, or there is nothing left to report. */
  #stopThread(): void {
    this.#isThreadTried = true;
    void this.#thread?.terminate();
    this.#loseThread();
  }

  #loseThread(): void {
    this.#isThreadUp = false;
    this.#thread = undefined;
  }

  #hear(word: ThreadWord): void {
    if (word === "refused") this.#parts.onRefused();
    // By the second turn from here everything that had arrived when the question came has been read and listed.
    else
      setImmediate(() =>
        setImmediate(() => {
          this.#held.answered = word.question;
        }),
      );
  }
}

/** Without the modules that the user has Node.js preload (`--require`, `--import`): these are for the handler. */
function openThread(start: ThreadStart): Thread {
  const { Worker } = process.getBuiltinModule("node:worker_threads");
  const { NODE_OPTIONS: _, ...env } = process.env;
  const options: WorkerOptions = { name: "pings", workerData: start, env, execArgv: [] };
  return new Worker(new URL("./ping-thread.js", import.meta.url), options);
}
