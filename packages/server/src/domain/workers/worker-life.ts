import type { Exit, Resources, Wanted, Worker, WorkerHandle } from "./worker.js";

/** Where a worker is in its life: what is wanted of it, until it has ended. */
export type WorkerStage = Wanted | "ended";

export const stageOf = ({ wanted, endedAt }: Pick<Worker, "wanted" | "endedAt">): WorkerStage =>
  endedAt === undefined ? wanted : "ended";

/** What is known by each event, kept in the worker's row. Times are milliseconds. */
interface Facts {
  wait: { why: string };
  place: { hostNo: number; resources: Resources; placedAt: number };
  close: { closedAt: number; why: string };
  giveUp: { closedAt: number };
  pause: { pausedAt: number; why: string };
  resume: { resumedAt: number; why: string };
  stop: { stopAt: number; killAt: number; why: string };
  hurry: { killAt: number };
  adopt: { hostNo: number };
  prepare: { secretHash: string; workerUrl: string; address?: string; handle?: WorkerHandle };
  start: { startedAt: number; imageAt?: number; madeAt?: number; address?: string; handle?: WorkerHandle };
  freeze: object;
  askToStop: { askedAt: number };
  condemn: { killAt: number; exit: Exit };
  end: { endedAt: number; exit: Exit };
  ready: { readyAt: number };
  ping: { hasPinged: true };
  output: { outputAt: number };
  done: { lastDoneAt: number; outputAt?: number };
  lastWords: { exit: Exit };
  ail: { trouble: { readonly at: number; readonly why: string } };
  recover: { trouble: undefined };
}

export type WorkerEvent = keyof Facts;

/** One change of a worker's row, decided; the store applies it only where the table allows it. */
export type WorkerChange = { [Event in WorkerEvent]: { readonly by: Event } & Readonly<Facts[Event]> }[WorkerEvent];

/** What a change may know. */
export type WorkerFact = { [Event in WorkerEvent]: keyof Facts[Event] }[WorkerEvent];

interface Transition {
  readonly from: readonly WorkerStage[];
  /** Absent: the stage stays. */
  readonly to?: WorkerStage;
  /** Only where this is not known yet. */
  readonly once?: "placedAt" | "readyAt";
}

const alive = ["running", "closed", "paused", "stopped"] as const satisfies WorkerStage[];

/** A worker's life: everything that may happen to its row. */
export const workerTransitions = {
  // the scaler
  wait: { from: ["running"], once: "placedAt" },
  place: { from: ["running"], once: "placedAt" },
  close: { from: ["running"], to: "closed" },
  pause: { from: ["running"], to: "paused" },
  resume: { from: ["paused"], to: "running" },
  stop: { from: ["running", "closed", "paused"], to: "stopped" },
  hurry: { from: ["stopped"] },
  // its host, or the one that watches hosts
  adopt: { from: alive },
  prepare: { from: alive },
  start: { from: alive },
  freeze: { from: ["paused"], to: "paused" },
  askToStop: { from: ["stopped"] },
  condemn: { from: alive },
  giveUp: { from: ["running", "paused"], to: "closed" },
  end: { from: alive, to: "ended" },
  // the worker's own word, or its silence
  ready: { from: alive, once: "readyAt" },
  ping: { from: alive },
  output: { from: alive },
  done: { from: alive },
  lastWords: { from: alive },
  ail: { from: alive },
  recover: { from: alive },
} as const satisfies Record<WorkerEvent, Transition>;

export const transitionOf = (event: WorkerEvent): Transition => workerTransitions[event];

/** Whether the table allows an event for a worker as it is. */
export const mayHappenTo = (event: WorkerEvent, worker: Worker): boolean => {
  const { from, once } = transitionOf(event);
  return from.includes(stageOf(worker)) && (once === undefined || worker[once] === undefined);
};

/** The worker after a change that the table allows. */
export function changed(worker: Worker, { by, ...facts }: WorkerChange): Worker {
  const { to } = transitionOf(by);
  return { ...worker, ...facts, ...(to === undefined || to === "ended" ? {} : { wanted: to }) };
}

/** Whether a worker's row is as this change left it. */
export function holds(worker: Worker, { by, ...facts }: WorkerChange): boolean {
  const { to } = transitionOf(by);
  const isThere = to === undefined || stageOf(worker) === to;
  const row = worker as unknown as Record<string, unknown>;
  return isThere && Object.entries(facts).every(([fact, value]) => JSON.stringify(row[fact]) === JSON.stringify(value));
}
