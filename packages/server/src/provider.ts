import type { Exit, ProcessHandle } from "./domain/worker.js";

/** What a worker is started from. */
export interface Launch {
  readonly workerId: string;
  /** The handler's directory. */
  readonly directory: string;
  /** The template's own command, or none: then the handler found in the directory is run. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A worker as its provider sees it now. */
export type Sighting =
  | { readonly state: "running"; readonly handle: ProcessHandle }
  | { readonly state: "ended"; readonly exit: Exit }
  | { readonly state: "unknown" };

/** The contract for running workers: start, look, stop. Everything is named by the worker's id, so that each call may be repeated. */
export interface Provider {
  /** Starts a worker; rejects with one sentence where it cannot. */
  start(launch: Launch): Promise<ProcessHandle>;
  /** What became of a worker, also one that an earlier server started. */
  look(workerId: string): Promise<Sighting>;
  /** Asks its leader to stop. */
  stop(workerId: string): Promise<void>;
  /** Ends it and all its children. `handle` finds those whose keeper is gone. */
  kill(workerId: string, handle: ProcessHandle | undefined): Promise<void>;
  /** The last lines of a worker's log, for the reason of a failed start. */
  logTail(workerId: string): Promise<string>;
  /** Forgets an ended worker. */
  forget(workerId: string): Promise<void>;
  /** Calls `listener` whenever a worker has ended. */
  onEnd(listener: (workerId: string) => void): void;
  /** We are about to go: workers that are left may live on for `awayMs`; 0 ends the keeper with its last worker. */
  leave(awayMs: number): Promise<void>;
}
