import type { Duplex } from "node:stream";
import type { HiddenSpan } from "./domain/access/secret.js";
import type { LogLine } from "./domain/workers/log-line.js";
import type { Exit, ExitCause, WorkerHandle } from "./domain/workers/worker.js";

/** What a worker is made from: a handler's directory on this machine, or a container image. */
export type WorkerSource =
  | { readonly directory: string }
  | {
      readonly image: string;
      /** The registry's credentials, in case the image has to be pulled. */
      readonly auth?: { readonly username: string; readonly password: string } | undefined;
    };

/** What a worker is to be, whichever provider runs it. */
export interface WorkerSpec<From extends WorkerSource = WorkerSource> {
  readonly workerId: string;
  readonly from: From;
  /** Replaces the image's own entry point, if the template sets one. */
  readonly entrypoint: readonly string[];
  /** The template's start command; if empty, the default of the image or handler is used. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where `env` holds secrets: these texts are masked in its log, as the worker's own secret is. */
  readonly hidden?: readonly HiddenSpan[];
  /** Volumes that it sees, if it has a file system of its own. */
  readonly mounts: readonly Mount[];
  /** The TCP ports named by the template. */
  readonly ports?: readonly number[];
  /** The GPUs it gets, by id: all others are hidden from it. */
  readonly gpus?: readonly string[] | undefined;
  /** The GPUs it gets where its host picks them. */
  readonly gpuWish?: GpuWish | undefined;
  /** In a cluster, the operator's class of pods that it belongs to. */
  readonly podClass?: string | undefined;
  readonly cpus?: number | undefined;
  /** Without it, a share of the engine's machine. */
  readonly memoryMib?: number | undefined;
  /** How much it may write outside its volumes, in GB, if the engine can enforce that. */
  readonly diskGb?: number | undefined;
}

/** Which GPUs a worker is to get. */
export interface GpuWish {
  readonly count: number;
  /** In order of preference; none: any. */
  readonly types: readonly string[];
  /** The CUDA version that their driver must support, such as 12.8. */
  readonly minCuda?: string | undefined;
}

/** A worker made from an image. */
export type ImageSpec = WorkerSpec<Extract<WorkerSource, { image: string }>>;
/** A worker made from a directory. */
export type DirectorySpec = WorkerSpec<Extract<WorkerSource, { directory: string }>>;

/** The progress of a start: its host has found room for it, its image is ready, or its container is made. */
export type StartPhase = "placed" | "image" | "made";
/** A network volume and where a worker sees it. */
export interface Mount {
  readonly target: string;
  readonly volumeId: string;
  /** The volume's directory on this machine. A provider whose workers run elsewhere, or that keeps volumes, ignores it. */
  readonly path: string;
  /** For a provider that keeps volumes of a size. */
  readonly sizeGb?: number | undefined;
}

/** Why a worker has no node: its cluster has no room for it, or it may yet get one, from a queue or an autoscaler. */
export type Unplaced = "full" | "waiting";

/** Callbacks for a start in progress. */
export interface Starting {
  readonly reached: (phase: StartPhase) => void;
  /** Called with what is being done, if it takes long; with `unplaced`, it has no node of its cluster yet. */
  readonly note: (doing: string, unplaced?: Unplaced) => void;
  /**
   * Aborted when the worker is no longer wanted: steps that have not begun are skipped. With {@link left} as its reason,
   * somebody else goes on with this start: what has been made stays, and the start ends as {@link StartUnsure}.
   */
  readonly signal: AbortSignal;
}

/** The reason of a signal whose start is left to another server. */
export const left = "left";

/**
 * It is unknown whether a worker was started, because its provider went away meanwhile. Look it up instead of giving it
 * up.
 */
export class StartUnsure extends Error {}

/** Connects to a TCP port of a worker. Connections to different workers take turns. */
export type Connect = (worker: { readonly id: string; readonly no: number }, port: number) => Promise<Duplex>;

/**
 * Opens the secrets of the jobs that a worker has had, also at other servers or earlier ones: each call returns those that
 * were not returned before. A provider asks for them before it stores or shows what the worker has printed, and masks them
 * as those given to {@link Provider.hide}.
 */
export type JobSecrets = (workerId: string) => () => Promise<readonly string[]>;

/** A worker could not be started, with the likely cause. */
export class StartFailed extends Error {
  readonly blame: ExitCause;

  constructor(sentence: string, blame: ExitCause) {
    super(sentence);
    this.blame = blame;
  }
}

/** A worker as its provider sees it now. */
export type Sighting =
  | { readonly state: "running"; readonly handle: WorkerHandle }
  | { readonly state: "ended"; readonly exit: Exit }
  | {
      readonly state: "unknown";
      /** What has become of it, for people: "its keeper was gone". */
      readonly why: string;
      /** There is certainly no such worker, so it may be started. Otherwise it may run unseen. */
      readonly isAbsent: boolean;
    };

/** Selects lines of a worker's log. */
export interface LogQuery {
  /** Only lines from this microsecond on. */
  readonly sinceUs?: number | undefined;
  /** Only lines before this microsecond. */
  readonly untilUs?: number | undefined;
  /** Only the last of the existing lines, this many; without it, all that are kept. */
  readonly tail?: number | undefined;
  /** Only lines marked as this job's. */
  readonly jobId?: string | undefined;
  /** Also new lines, until the worker ends. */
  readonly follow?: boolean;
  /** Bounds how much of the existing log is read; without it, all of it is. */
  readonly search?: LogSearch | undefined;
  /** Ends the reading. */
  readonly signal: AbortSignal;
}

/** How many bytes a request may still read, over all logs; readers subtract what they have read. */
export interface LogSearch {
  bytesLeft: number;
}

/** The contract for running workers. Everything is identified by the worker's id, so that each call may be repeated. */
export interface Provider<Spec extends WorkerSpec = WorkerSpec> {
  /** The handle that a worker will have, as far as it is known before the start. */
  handleOf(spec: Spec): WorkerHandle | undefined;
  /** Starts a worker; rejects with one sentence if it cannot, or with {@link StartUnsure} if the outcome is unknown. */
  start(spec: Spec, starting?: Starting): Promise<WorkerHandle>;
  /** A worker's state, even if an earlier server started it. The handle, if known, tells which provider runs it. */
  look(workerId: string, handle?: WorkerHandle): Promise<Sighting>;
  /** Freezes a worker with all its processes; its memory is kept. */
  pause(workerId: string): Promise<void>;
  /** Resumes a paused worker. */
  resume(workerId: string): Promise<void>;
  /** Asks a worker's leader to stop; a paused worker is resumed for that. */
  stop(workerId: string): Promise<void>;
  /** Kills a worker and all its children. `handle` finds them if their keeper is gone. */
  kill(workerId: string, handle: WorkerHandle | undefined): Promise<void>;
  /** The last lines of a worker's log, to explain a failed start. */
  logTail(workerId: string): Promise<string>;
  /**
   * A worker's lines in order, in batches that are never empty; also for a worker that has ended or was forgotten, as
   * long as its log is kept. A slow reader holds up nobody. An unknown worker has no lines. Masks the worker's own
   * secret, and those given to {@link Provider.hide}.
   */
  logs(workerId: string, handle: WorkerHandle | undefined, query: LogQuery): AsyncIterable<readonly LogLine[]>;
  /** From now on masks a secret in a worker's log, as kept and as shown; does nothing for an unknown worker. */
  hide(workerId: string, secret: string): Promise<void>;
  /**
   * Connects to a port of a worker, where its address is not reached from here; without it, it is. Rejects with
   * `RouteAway` if it is unknown whether the worker would answer. An error whose `syscall` is `connect` means that
   * nothing has reached the worker.
   */
  readonly connect?: Connect | undefined;
  /** Forgets an ended worker; its log is kept. */
  forget(workerId: string): Promise<void>;
  /**
   * Calls `listener` when a worker has ended or should be looked up; the worker may no longer be wanted. The result ends
   * that.
   */
  onEnd(listener: (workerId: string) => void): () => void;
  /**
   * Announces that this server is about to exit: remaining workers may live on for `awayMs`; with 0, the keeper ends
   * with its last worker.
   */
  leave(awayMs: number): Promise<void>;
}
