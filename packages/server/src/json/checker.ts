import { Worker } from "node:worker_threads";
import { programFile } from "../host/programs.js";
import { limits } from "../limits/index.js";
import type { Scan } from "./scan.js";
import type { Task } from "./thread.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** A thread's reply to a check or a split. */
interface Done {
  readonly bytes: Buffer;
  readonly scan?: Scan;
  readonly digest?: string;
  readonly pieces?: readonly Uint8Array[];
}

/** A thread that is started for the first task, and again after it ran out of memory. */
export class Checker {
  readonly #waiting = new Map<number, { resolve: (done: Done) => void; reject: (error: Error) => void }>();
  #thread: Worker | undefined;
  readonly #nice: number;

  /** `nice`: by how much its thread gives way to others. */
  constructor(nice: number) {
    this.#nice = nice;
  }

  /** Gives the thread a task and waits for the result. */
  do(task: Task, moved: ArrayBuffer[] = []): Promise<Done> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(task.no, { resolve, reject });
      this.tell(task, moved).ref();
    });
  }

  /** Gives the thread a task; returns the thread that has it now. */
  tell(task: Task, moved: ArrayBuffer[] = []): Worker {
    this.#thread ??= this.#start();
    this.#thread.postMessage(task, moved);
    return this.#thread;
  }

  isRunBy(thread: Worker): boolean {
    return thread === this.#thread;
  }

  #start(): Worker {
    const started = new Worker(programFile("#json-thread"), { workerData: { nice: this.#nice } });
    const waiting = this.#waiting;
    started.unref();
    started.on("message", ({ no, bytes, ...done }: Omit<Done, "bytes"> & { no: number; bytes: Bytes }) => {
      waiting.get(no)?.resolve({ ...done, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) });
      waiting.delete(no);
      if (waiting.size === 0) started.unref();
    });
    // it ran out of memory: its texts are refused for now, and the next one starts a new thread
    started.on("error", (error) => {
      if (this.#thread === started) this.#thread = undefined;
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    });
    return started;
  }
}

/**
 * Texts of many megabytes have a thread of their own: smaller texts would wait for tenths of a second behind each. It gives
 * way to whatever else wants its processor, and takes longer when all are taken.
 */
export const checkers = { small: new Checker(0), large: new Checker(limits.jsonLargeNice) };
export const checkerOf = (bytes: number): Checker => (bytes > limits.jsonLargeBytes ? checkers.large : checkers.small);
