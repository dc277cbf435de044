import type { Worker as Thread, WorkerOptions } from "node:worker_threads";
import type { Connection } from "./connection.js";
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
  readonly ids: readonly string[];
  readonly flags: Int32Array;
}

/** A change of what the worker holds, told to the thread. */
export interface HeldChange {
  readonly id: string;
  readonly isHeld: boolean;
}

/** What the thread has to say: the server refuses its calls, or a question that is answered in `flags.answered`. */
export type ThreadWord = "refused" | { readonly question: number };

/** Places in the memory shared with the thread. */
export const flags = {
  /** 1 while a take is open: it may have brought a job that this thread, being busy, has not read yet. */
  isAsking: 0,
  /** The number of the last question answered. */
  answered: 1,
} as const;

/**
 * Tells the server every few seconds that this worker lives, and what it holds. A thread of its own does so from the
 * first job on, so that a handler that computes for long doesn't make its worker look lost. Before that, and where
 * there is no such thread, the worker's own thread does.
 */
export class Pings {
  readonly #parts: Parts;
  readonly #place: PingPlace;
  readonly #pinger: Pinger;
  readonly #flags = new Int32Array(new SharedArrayBuffer(8));
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
    this.#isThreadTried = true;
    void this.#thread?.terminate();
  }

  /** Says whether a take is open. Jobs that it brought are to be told before its end is. */
  noteAsking(isAsking: boolean): void {
    Atomics.store(this.#flags, flags.isAsking, isAsking ? 1 : 0);
  }

  /** A job is held from now on; to be called before its handler runs, which may keep this thread busy for long. */
  noteHeld(id: string): void {
    if (this.#thread) this.#tell({ id, isHeld: true });
    else this.#startThread();
  }

  /** A job is over, and the server knows its result. */
  noteOver(id: string): void {
    this.#tell({ id, isHeld: false });
  }

  #tell(change: HeldChange): void {
    this.#thread?.postMessage(change);
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
        ids: this.#parts.heldIds(),
        flags: this.#flags,
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

  #loseThread(): void {
    this.#isThreadUp = false;
    this.#thread = undefined;
  }

  #hear(word: ThreadWord): void {
    if (word === "refused") return this.#parts.onRefused();
    // The second turn from here has read whatever had arrived when the question came, and told it to the thread.
    setImmediate(() => setImmediate(() => Atomics.store(this.#flags, flags.answered, word.question)));
  }
}

/** Without what the user has Node.js load at its start (`--require`, `--import`): that is for the handler. */
function openThread(start: ThreadStart): Thread {
  const { Worker } = process.getBuiltinModule("node:worker_threads");
  const { NODE_OPTIONS: _, ...env } = process.env;
  const options: WorkerOptions = { name: "pings", workerData: start, env, execArgv: [] };
  return new Worker(new URL("./ping-thread.js", import.meta.url), options);
}
