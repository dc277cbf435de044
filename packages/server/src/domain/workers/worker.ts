import { limits } from "../../limits/index.js";
import type { Gpu } from "../hosts/gpu.js";

/** What the scaler asks of a worker. */
export type Wanted = "running" | "closed" | "paused" | "stopped";

/** What a worker's end is to be blamed on, where that is known: what its operator has to look at first. */
export type ExitCause = "image" | "memory" | "gpu" | "start";

/** How a worker's process ended. */
export interface Exit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
  /** What it said last, or what became of it. */
  readonly note: string | undefined;
  readonly cause?: ExitCause;
}

/** Where a local process is found again: its id together with its start time, so that a reused id is never taken for it. */
export interface ProcessHandle {
  readonly pid: number;
  /** Clock ticks since boot, as /proc tells them. */
  readonly startTime: string;
}

/** Where a container is found again: by a name that is known before it is made. */
export interface ContainerHandle {
  readonly container: string;
  /** Its own on the engine's network, where it has one: known once it runs. */
  readonly address?: string;
  /** Its ports, and where on the engine's machine each is published. */
  readonly published?: Readonly<Record<string, number>>;
  /** At which address of that machine. */
  readonly publishedAt?: string;
}

export type WorkerHandle = ProcessHandle | ContainerHandle;
export const isContainer = (handle: WorkerHandle | undefined): handle is ContainerHandle =>
  handle !== undefined && "container" in handle;

/** What a worker was given of its host, for itself alone. */
export interface Resources {
  readonly gpus: readonly Pick<Gpu, "id" | "name">[];
  /** Virtual processors; undefined where they are not counted. */
  readonly cpus: number | undefined;
  readonly memoryMib: number | undefined;
}

/** One running copy of a version. Its row exists before it is started. Times are milliseconds. */
export interface Worker {
  readonly no: number;
  readonly id: string;
  readonly endpointNo: number;
  readonly version: number;
  readonly hostNo: number;
  readonly wanted: Wanted;
  readonly secretHash: string | undefined;
  readonly handle: WorkerHandle | undefined;
  /** The address it was told to call; a worker of another address is stopped at adoption. */
  readonly workerUrl: string | undefined;
  readonly resources: Resources | undefined;
  /** Where its HTTP server is reached, as host:port; of a load-balancing endpoint's worker. */
  readonly address: string | undefined;
  readonly createdAt: number;
  /** When no host had what it needs, and when it got it after all. */
  readonly throttledAt: number | undefined;
  readonly placedAt: number | undefined;
  /** When its image was there, when its container was made, and when its process was started. */
  readonly imageAt: number | undefined;
  readonly madeAt: number | undefined;
  readonly startedAt: number | undefined;
  /** When it first asked for a job. */
  readonly readyAt: number | undefined;
  /** When it first put something out. */
  readonly outputAt: number | undefined;
  /** When it was last to be frozen, and when it was last to go on: never the same time. */
  readonly pausedAt: number | undefined;
  readonly resumedAt: number | undefined;
  readonly closedAt: number | undefined;
  /** When it was asked to stop, and when it is killed for not having done so. */
  readonly stopAt: number | undefined;
  /** When it was told so: from then on its polls are answered at once. */
  readonly askedAt: number | undefined;
  readonly killAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly lastDoneAt: number | undefined;
  readonly hasPinged: boolean;
  /** Since when it is of no use, though it runs, and why; undefined where nothing is known against it. */
  readonly trouble: { readonly at: number; readonly why: string } | undefined;
  /** Why what is wanted of it changed last, or why it waits for a place. */
  readonly why: string | undefined;
  /** What servers have told each other of it: 0, or 1 slot, where there is one server. */
  readonly seenAt: number;
  readonly busyAt: number;
  readonly polledAt: number;
  readonly slots: number;
  readonly exit: Exit | undefined;
}

/** What a worker is doing, as people are shown it. */
export type WorkerState = "throttled" | "starting" | "idle" | "running" | "closing" | "paused" | "stopping" | "ended";

/** What is said of a worker that was ended with its host: its processes may still be there, and hold its GPUs. */
export const hostIsSilent = "its host has been silent for 30 s";

/** Whether it waits for a host that has what it needs. */
export const isThrottled = ({ throttledAt, placedAt }: Worker): boolean =>
  throttledAt !== undefined && placedAt === undefined;

/** Whether its processes are frozen, or just about to be. */
export const isFrozen = ({ pausedAt, resumedAt }: Worker): boolean =>
  pausedAt !== undefined && (resumedAt === undefined || resumedAt < pausedAt);

/** `held`: how many jobs it holds now. */
export function workerState(worker: Worker, held: number): WorkerState {
  if (worker.endedAt !== undefined) return "ended";
  // one that is lost is to be killed, though nobody wanted its end
  if (worker.wanted === "stopped" || worker.killAt !== undefined) return "stopping";
  if (worker.wanted === "paused") return "paused";
  if (worker.wanted === "closed") return "closing";
  if (isThrottled(worker)) return "throttled";
  if (worker.readyAt === undefined) return "starting";
  return held > 0 ? "running" : "idle";
}

/** Whether the end of this worker counts as a failed start: nobody asked for it, it never did anything, and it was not up for long. */
export const failedToStart = (worker: Worker, held: number, now: number): boolean =>
  (worker.readyAt === undefined || now < worker.readyAt + limits.provenMs) &&
  worker.pausedAt === undefined &&
  (worker.wanted === "running" || worker.wanted === "closed") &&
  worker.lastDoneAt === undefined &&
  held === 0;
