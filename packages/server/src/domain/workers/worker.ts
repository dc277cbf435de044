import { limits } from "../../limits/index.js";
import type { Gpu } from "../hosts/gpu.js";

/** What the scaler asks of a worker. */
export type Wanted = "running" | "closed" | "paused" | "stopped";

/**
 * The likely cause of a worker's end, if known: what its operator should look at first. If it is the host, the end says
 * nothing about how such workers start.
 */
export type ExitCause = "image" | "memory" | "gpu" | "start" | "host";

/** How a worker's process ended. */
export interface Exit {
  readonly code?: number;
  readonly signal?: string;
  /** Its last message, or what happened to it. */
  readonly note?: string;
  readonly cause?: ExitCause;
}

/** How a worker is found again. */
export interface WorkerHandle {
  /** The name of the provider that runs it. */
  readonly provider: string;
  /** The provider's own reference to it, which only the provider reads. It is logged, so it must hold no secret. */
  readonly ref: Readonly<Record<string, unknown>>;
  /** Its own network; without it, the worker shares its machine's. */
  readonly network?: WorkerNetwork;
  /** It cannot be frozen, so an idle one is stopped instead. */
  readonly isUnfreezable?: true;
}

/** The network of a worker that does not share its machine's. */
export interface WorkerNetwork {
  /** Who reaches the worker by its address: the servers of its own host, or all. */
  readonly reachedFrom: "host" | "anywhere";
  /** Its address there, if it has one; known once it runs. */
  readonly address?: string;
  /** Its ports, and the port on its machine where each is published. */
  readonly published?: Readonly<Record<string, number>>;
  /** The address of that machine where they are published. */
  readonly publishedAt?: string;
}

/** The resources of its host that a worker has for its exclusive use. */
export interface Resources {
  readonly gpus: readonly Pick<Gpu, "id" | "name">[];
  /** Virtual processors; undefined if they are not counted. */
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
  /** The URL it was told to call; at adoption, a worker with another URL is stopped. */
  readonly workerUrl: string | undefined;
  readonly resources: Resources | undefined;
  /** Where its HTTP server is reached, as host:port; only for load-balanced endpoints. */
  readonly address: string | undefined;
  readonly createdAt: number;
  /** When it had to wait because no host had the resources it needs, and when it got its place. */
  readonly throttledAt: number | undefined;
  readonly placedAt: number | undefined;
  /** When its image was ready, its container made, and its process started. */
  readonly imageAt: number | undefined;
  readonly madeAt: number | undefined;
  readonly startedAt: number | undefined;
  /** When it first asked for a job. */
  readonly readyAt: number | undefined;
  /** When it produced its first output. */
  readonly outputAt: number | undefined;
  /** When it was last told to freeze, and last told to resume; never at the same time. */
  readonly pausedAt: number | undefined;
  readonly resumedAt: number | undefined;
  /** How long it was paused before, without the present pause. */
  readonly pausedMs: number;
  readonly closedAt: number | undefined;
  /** When it was asked to stop, and when it is killed if it has not. */
  readonly stopAt: number | undefined;
  /** When the request to stop reached it: from then on its polls are answered at once. */
  readonly askedAt: number | undefined;
  readonly killAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly lastDoneAt: number | undefined;
  readonly hasPinged: boolean;
  /** Since when it runs without being of use, and why; undefined if no problem is known. */
  readonly trouble: { readonly at: number; readonly why: string } | undefined;
  /** Why `wanted` last changed, or why it waits for a place. */
  readonly why: string | undefined;
  /** What servers have told each other about it; with one server 0, and 1 for `slots`. */
  readonly seenAt: number;
  readonly busyAt: number;
  readonly polledAt: number;
  readonly slots: number;
  readonly exit: Exit | undefined;
}

/** A worker's state as shown to users. */
export type WorkerState = "throttled" | "starting" | "idle" | "running" | "closing" | "paused" | "stopping" | "ended";

/** Why a worker was ended along with its host: its processes may still run, and hold its GPUs. */
export const hostIsSilent = "its host has been silent for 30 s";

/** Whether an ended worker has left nothing, neither logs nor a bill. A silent host may have started it unseen. */
export const neverRan = ({ startedAt, readyAt, exit }: Worker): boolean =>
  startedAt === undefined &&
  readyAt === undefined &&
  exit?.code === undefined &&
  exit?.signal === undefined &&
  exit?.note !== hostIsSilent;

/** Whether it waits for a host with the resources it needs. */
export const isThrottled = ({ throttledAt, placedAt }: Worker): boolean =>
  throttledAt !== undefined && placedAt === undefined;

/** Whether its processes are frozen, or about to be. */
export const isFrozen = ({ pausedAt, resumedAt }: Worker): boolean =>
  pausedAt !== undefined && (resumedAt === undefined || resumedAt < pausedAt);

/** A worker's state; `held`: how many jobs it holds now. */
export function workerState(worker: Worker, held: number): WorkerState {
  if (worker.endedAt !== undefined) return "ended";
  // a lost worker is to be killed, although no one asked it to stop
  if (worker.wanted === "stopped" || worker.killAt !== undefined) return "stopping";
  if (worker.wanted === "paused") return "paused";
  if (worker.wanted === "closed") return "closing";
  if (isThrottled(worker)) return "throttled";
  if (worker.readyAt === undefined) return "starting";
  return held > 0 ? "running" : "idle";
}

/**
 * Whether this worker's end counts as a failed start: it was not asked to end, it never did anything, and it was up
 * only briefly.
 */
export const failedToStart = (worker: Worker, held: number, now: number): boolean =>
  (worker.readyAt === undefined || now < worker.readyAt + limits.provenMs) &&
  worker.pausedAt === undefined &&
  (worker.wanted === "running" || worker.wanted === "closed") &&
  worker.lastDoneAt === undefined &&
  held === 0;
