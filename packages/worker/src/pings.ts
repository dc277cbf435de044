import type { Worker as Thread, WorkerOptions } from "node:worker_threads";
import type { Connection } from "./connection.js";
import { HeldList } from "./held-list.js";
import { Pinger, type PingPlace } from "./pinger.js";
import type { Settings } from "./settings.js";

interface Parts {
  readonly settings: Settings;
  readonly connection: Connection;
  /** The jobs that this worker holds: running, or with a result that the server doesn't have yet. */
  heldIds(): string[];
  onRefused(): void;
}

/** What the thread is given at its start. */
export interface ThreadStart {
  readonly place: PingPlace;
  readonly apiKey: string;
  /** Of the `HeldList`. */
  readonly memory: SharedArrayBuffer;
}

/** What the thread has to say: the server refuses its calls, or a question: is the main thread awake? */
export type ThreadWord = "refused" | { readonly question: number };

/**
 * Tells the server every few seconds that this worker lives, and what it holds. A thread of its own does so from the
 * first job on, so that a handler that computes for long doesn't make its worker look lost. Before that, and where
 * there is no such thread, the worker's own thread does.
 */
export class Pings {
  readonly #parts: Parts;
  readonly #place: PingPlace;
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
    this.#place = { pingUrl, doneBatchUrl, pingIntervalMs };
    this.#pinger = new Pinger({ place: this.#place, connection: parts.connection, onRefused: parts.onRefused });
  }

  start(): void {
    if (!this.#place.pingUrl) return;
    this.#timer = setInterval(() => void this.#ping(), this.#place.pingIntervalMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopThread();
  }

  /** Says whether a take is open. Jobs that it brought are to be told before its end is. */
  noteAsking(isAsking: boolean): void {
    this.#held.isAsking = isAsking;
  }

  /** A job is held from now on; to be called before its handler runs, which may keep this thread busy for long. */
  noteHeld(id: string): void {
    if (this.#held.add(id)) this.#startThread();
    else this.#stopThread();
  }

  /** A job is over, and the server knows its result. */
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
    if (this.#isThreadTried || !this.#place.pingUrl) return;
    this.#isThreadTried = true;
    try {
      const thread = openThread({
        place: this.#place,
        apiKey: this.#parts.settings.apiKey,
        memory: this.#held.memory,
      });
      thread.unref();
      thread.on("message", (word: ThreadWord) => this.#hear(word));
      thread.on("online", () => {
        this.#isThreadUp = true;
      });
      // Whatever ends it: the pings are this thread's again.
      thread.on("error", () => this.#loseThread());
      thread.on("exit", () => this.#loseThread());
      this.#thread = thread;
    } catch {
      this.#loseThread();
    }
  }

  /** For good: what it would tell is not the whole list, or there is nothing left to tell. */
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
    // The second turn from here has read whatever had arrived when the question came, and listed it.
    else
      setImmediate(() =>
        setImmediate(() => {
          this.#held.answered = word.question;
        }),
      );
  }
}

/** Without what the user has Node.js load at its start (`--require`, `--import`): that is for the handler. */
function openThread(start: ThreadStart): Thread {
  const { Worker } = process.getBuiltinModule("node:worker_threads");
  const { NODE_OPTIONS: _, ...env } = process.env;
  const options: WorkerOptions = { name: "pings", workerData: start, env, execArgv: [] };
  return new Worker(new URL("./ping-thread.js", import.meta.url), options);
}
