/** What the scaler asks of a worker. */
export type Wanted = "running" | "closed" | "paused" | "stopped";

/** How a worker's process ended. */
export interface Exit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
  /** What it said last, or what became of it. */
  readonly note: string | undefined;
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
}

export type WorkerHandle = ProcessHandle | ContainerHandle;
export const isContainer = (handle: WorkerHandle | undefined): handle is ContainerHandle =>
  handle !== undefined && "container" in handle;

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
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  /** When it first asked for a job. */
  readonly readyAt: number | undefined;
  readonly closedAt: number | undefined;
  /** When it was asked to stop, and when it is killed for not having done so. */
  readonly stopAt: number | undefined;
  /** When it was told so: from then on its polls are answered at once. */
  readonly askedAt: number | undefined;
  readonly killAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly lastDoneAt: number | undefined;
  readonly hasPinged: boolean;
  /** What servers have told each other of it: 0, or 1 slot, where there is one server. */
  readonly seenAt: number;
  readonly busyAt: number;
  readonly polledAt: number;
  readonly slots: number;
  readonly exit: Exit | undefined;
}

/** What a worker is doing, as people are shown it. */
export type WorkerState = "starting" | "idle" | "running" | "closing" | "paused" | "stopping" | "ended";

/** `held`: how many jobs it holds now. */
export function workerState(worker: Worker, held: number): WorkerState {
  if (worker.endedAt !== undefined) return "ended";
  if (worker.wanted === "stopped") return "stopping";
  if (worker.wanted === "paused") return "paused";
  if (worker.wanted === "closed") return "closing";
  if (worker.readyAt === undefined) return "starting";
  return held > 0 ? "running" : "idle";
}

/** Whether the end of this worker counts as a failed start: nobody asked for it, and it never did anything. */
export const failedToStart = (worker: Worker, held: number): boolean =>
  (worker.wanted === "running" || worker.wanted === "closed") && worker.lastDoneAt === undefined && held === 0;
