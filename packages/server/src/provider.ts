import type { LogLine } from "./domain/workers/log-line.js";
import type { Exit, ExitCause, WorkerHandle } from "./domain/workers/worker.js";

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
  readonly mounts: readonly Mount[];
  /** The TCP ports that its template names. */
  readonly ports?: readonly number[];
  /** What its registry asks for where the image has to be pulled. */
  readonly auth?: { readonly username: string; readonly password: string } | undefined;
  /** The GPUs it is to have, by id: all others are hidden from it. */
  readonly gpus?: readonly string[] | undefined;
  readonly cpus?: number | undefined;
  /** Without it: a share of the engine's machine. */
  readonly memoryMib?: number | undefined;
  /** How much it may write beside its volumes, where the engine can bound that. */
  readonly diskGb?: number | undefined;
}

/** What a start has behind it: its image is there; its container is made. */
export type StartPhase = "image" | "made";
/** What a container sees beside its image: a directory of the engine's machine, or a volume that the engine keeps. */
export type Mount = { readonly target: string } & ({ readonly source: string } | { readonly volume: string });

/** What who waits for a start may say and hear. */
export interface Starting {
  readonly reached: (phase: StartPhase) => void;
  /** Hears what is being done, where it takes long. */
  readonly note: (doing: string) => void;
  /** Aborted when the worker is not wanted any more: what has not begun does not begin. */
  readonly signal: AbortSignal;
}

/** Whether a worker was started is not known: its provider went away meanwhile. It is to be looked for, not given up. */
export class StartUnsure extends Error {}

/** A worker that could not be started, and what that is to be blamed on. */
export class StartFailed extends Error {
  readonly blame: ExitCause;

  constructor(sentence: string, blame: ExitCause) {
    super(sentence);
    this.blame = blame;
  }
}

/** What a worker is started from. */
export type Launch = ProcessLaunch | ContainerLaunch;

/** A worker as its provider sees it now. */
export type Sighting =
  | { readonly state: "running"; readonly handle: WorkerHandle }
  | { readonly state: "ended"; readonly exit: Exit }
  | { readonly state: "unknown" };

/** Which lines of a worker's log are wanted. */
export interface LogQuery {
  /** Those of this microsecond and later. */
  readonly sinceUs?: number | undefined;
  /** The last so many of those that are there; without it all that are kept. */
  readonly tail?: number | undefined;
  /** Those that are marked as this job's. */
  readonly jobId?: string | undefined;
  /** Also what comes from now on, until the worker ends. */
  readonly follow?: boolean;
  /** What may be read of lines that are there already; without it all that are kept. */
  readonly search?: LogSearch | undefined;
  /** Ends the reading. */
  readonly signal: AbortSignal;
}

/** How many bytes one request may still have read, of all logs together: who reads counts them off. */
export interface LogSearch {
  bytesLeft: number;
}

/** The contract for running workers: start, look, stop. Everything is named by the worker's id, so that each call may be repeated. */
export interface Provider<From extends Launch = Launch, Handle extends WorkerHandle = WorkerHandle> {
  /** Where a worker will be found again, as far as that is known before it is started. */
  handleOf(launch: From): Handle | undefined;
  /** Starts a worker; rejects with one sentence where it cannot, with {@link StartUnsure} where that is not known. */
  start(launch: From, starting?: Starting): Promise<Handle>;
  /** What became of a worker, also one that an earlier server started; its handle, where it is known, tells whose it is. */
  look(workerId: string, handle?: WorkerHandle): Promise<Sighting>;
  /** Freezes a worker with all its processes; its memory is kept. */
  pause(workerId: string): Promise<void>;
  /** Lets a paused worker go on. */
  resume(workerId: string): Promise<void>;
  /** Asks its leader to stop; a paused one goes on to do so. */
  stop(workerId: string): Promise<void>;
  /** Ends it and all its children. `handle` finds those whose keeper is gone. */
  kill(workerId: string, handle: WorkerHandle | undefined): Promise<void>;
  /** The last lines of a worker's log, for the reason of a failed start. */
  logTail(workerId: string): Promise<string>;
  /**
   * A worker's lines in their order, some at a time, never none: also of one that has ended, or was forgotten, as long as they
   * are kept. Who reads slowly keeps nobody waiting. An unknown worker has none. The worker's own secret is masked, and what {@link Provider.hide} was told.
   */
  logs(workerId: string, handle: WorkerHandle | undefined, query: LogQuery): AsyncIterable<readonly LogLine[]>;
  /** From now on masks this text in what is kept and shown of a worker's log; of an unknown worker there is none. */
  hide(workerId: string, secret: string): Promise<void>;
  /** Forgets an ended worker; its log is kept. */
  forget(workerId: string): Promise<void>;
  /** Calls `listener` whenever a worker has ended, or should be looked for: it may be none of those that are wanted. */
  onEnd(listener: (workerId: string) => void): void;
  /** We are about to go: workers that are left may live on for `awayMs`; 0 ends the keeper with its last worker. */
  leave(awayMs: number): Promise<void>;
}
