import type { Exit, WorkerHandle } from "./domain/worker.js";

interface Started {
  readonly workerId: string;
  /** The template's own start command, or none: then the one that comes with what is started. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A worker that is a process of this machine. */
export interface ProcessLaunch extends Started {
  /** The handler's directory. */
  readonly directory: string;
}

/** A worker that is a container. */
export interface ContainerLaunch extends Started {
  readonly image: string;
  /** In place of the image's own, where the template has one. */
  readonly entrypoint: readonly string[];
  /** Directories of the engine's machine, and where the container sees them. */
  readonly mounts: readonly { readonly source: string; readonly target: string }[];
}

/** What who waits for a start may say and hear. */
export interface Starting {
  /** Hears what is being done, where it takes long. */
  readonly note: (doing: string) => void;
  /** Aborted when the worker is not wanted any more: what has not begun does not begin. */
  readonly signal: AbortSignal;
}

/** Whether a worker was started is not known: its provider went away meanwhile. It is to be looked for, not given up. */
export class StartUnsure extends Error {}

/** What a worker is started from. */
export type Launch = ProcessLaunch | ContainerLaunch;

/** A worker as its provider sees it now. */
export type Sighting =
  | { readonly state: "running"; readonly handle: WorkerHandle }
  | { readonly state: "ended"; readonly exit: Exit }
  | { readonly state: "unknown" };

/** The contract for running workers: start, look, stop. Everything is named by the worker's id, so that each call may be repeated. */
export interface Provider<From extends Launch = Launch, Handle extends WorkerHandle = WorkerHandle> {
  /** Where a worker will be found again, as far as that is known before it is started. */
  handleOf(launch: From): Handle | undefined;
  /** Starts a worker; rejects with one sentence where it cannot, with {@link StartUnsure} where that is not known. */
  start(launch: From, starting?: Starting): Promise<Handle>;
  /** What became of a worker, also one that an earlier server started; its handle, where it is known, tells whose it is. */
  look(workerId: string, handle?: WorkerHandle): Promise<Sighting>;
  /** Asks its leader to stop. */
  stop(workerId: string): Promise<void>;
  /** Ends it and all its children. `handle` finds those whose keeper is gone. */
  kill(workerId: string, handle: WorkerHandle | undefined): Promise<void>;
  /** The last lines of a worker's log, for the reason of a failed start. */
  logTail(workerId: string): Promise<string>;
  /** Forgets an ended worker. */
  forget(workerId: string): Promise<void>;
  /** Calls `listener` whenever a worker has ended, or should be looked for: it may be none of those that are wanted. */
  onEnd(listener: (workerId: string) => void): void;
  /** We are about to go: workers that are left may live on for `awayMs`; 0 ends the keeper with its last worker. */
  leave(awayMs: number): Promise<void>;
}
