import type { Exit, Resources, Wanted, Worker, WorkerHandle } from "./worker.js";

/** A stage of a worker's life: what the scaler wants of it, or that it has ended. */
export type WorkerStage = Wanted | "ended";

export const stageOf = ({ wanted, endedAt }: Pick<Worker, "wanted" | "endedAt">): WorkerStage =>
  endedAt === undefined ? wanted : "ended";

/** The facts that each event records in the worker's row. Times are milliseconds. */
interface Facts {
  wait: { why: string };
  place: { hostNo: number; resources: Resources; placedAt: number };
  close: { closedAt: number; why: string };
  giveUp: { closedAt: number };
  pause: { pausedAt: number; why: string };
  resume: { resumedAt: number; pausedMs: number; why: string };
  stop: { stopAt: number; killAt: number; why: string };
  killSooner: { killAt: number };
  rehost: { hostNo: number };
  prepare: { secretHash: string; workerUrl?: string; address?: string; handle?: WorkerHandle };
  start: {
    startedAt: number;
    placedAt?: number;
    imageAt?: number;
    madeAt?: number;
    address?: string;
    handle?: WorkerHandle;
  };
  freeze: object;
  askToStop: { askedAt: number };
  kill: { killAt: number; exit: Exit };
  end: { endedAt: number; exit: Exit };
  ready: { readyAt: number };
  ping: { hasPinged: true };
  output: { outputAt: number };
  done: { lastDoneAt: number; outputAt?: number };
  lastWords: { exit: Exit };
  unhealthy: { trouble: { readonly at: number; readonly why: string } };
  healthy: { trouble: undefined };
}

export type WorkerEvent = keyof Facts;

/** One decided change of a worker's row. The store applies it only if the table allows it. */
export type WorkerChange = { [Event in WorkerEvent]: { readonly by: Event } & Readonly<Facts[Event]> }[WorkerEvent];

/** Any fact that an event can record. */
export type WorkerFact = { [Event in WorkerEvent]: keyof Facts[Event] }[WorkerEvent];

interface Transition {
  readonly from: readonly Wanted[];
  /** Absent if the stage does not change. */
  readonly to?: WorkerStage;
  /** The event happens only while this is unset. */
  readonly once?: "placedAt" | "readyAt";
}

const alive = ["running", "closed", "paused", "stopped"] as const satisfies Wanted[];

/** A worker's life: every event that can change its row. */
export const workerTransitions = {
  // the scaler
  wait: { from: ["running"], once: "placedAt" },
  place: { from: ["running"], once: "placedAt" },
  close: { from: ["running"], to: "closed" },
  pause: { from: ["running"], to: "paused" },
  resume: { from: ["paused"], to: "running" },
  stop: { from: ["running", "closed", "paused"], to: "stopped" },
  killSooner: { from: ["stopped"] },
  // its host, or the server that watches hosts
  rehost: { from: alive },
  prepare: { from: alive },
  start: { from: alive },
  freeze: { from: ["paused"], to: "paused" },
  askToStop: { from: ["stopped"] },
  kill: { from: alive },
  giveUp: { from: ["running", "paused"], to: "closed" },
  end: { from: alive, to: "ended" },
  // reported by the worker, or observed of it
  ready: { from: alive, once: "readyAt" },
  ping: { from: alive },
  output: { from: alive },
  done: { from: alive },
  lastWords: { from: alive },
  unhealthy: { from: alive },
  healthy: { from: alive },
} as const satisfies Record<WorkerEvent, Transition>;

export const transitionOf = (event: WorkerEvent): Transition => workerTransitions[event];

/** What an event makes the scaler want; undefined if it leaves that as it is. */
export function wantedBy(event: WorkerEvent): Wanted | undefined {
  const { to } = transitionOf(event);
  return to === "ended" ? undefined : to;
}

/** Whether the table allows an event for a worker in its present state. */
export const mayHappenTo = (event: WorkerEvent, worker: Worker): boolean => {
  const { from, once } = transitionOf(event);
  return (
    worker.endedAt === undefined && from.includes(worker.wanted) && (once === undefined || worker[once] === undefined)
  );
};

/** The worker after a change that the table allows. */
export const changed = (worker: Worker, { by, ...facts }: WorkerChange): Worker => ({
  ...worker,
  ...facts,
  wanted: wantedBy(by) ?? worker.wanted,
});

/** Whether a worker's row already shows the effect of this change. */
export function holds(worker: Worker, { by, ...facts }: WorkerChange): boolean {
  const { to } = transitionOf(by);
  const isThere = to === undefined || stageOf(worker) === to;
  const row = worker as unknown as Record<string, unknown>;
  return isThere && Object.entries(facts).every(([fact, value]) => JSON.stringify(row[fact]) === JSON.stringify(value));
}
