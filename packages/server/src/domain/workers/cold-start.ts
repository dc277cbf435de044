import type { Worker } from "./worker.js";

/** The steps of a cold start, each measured in milliseconds from the one before. */
export const coldStartSteps = ["place", "image", "create", "start", "ready"] as const;
export type ColdStartStep = (typeof coldStartSteps)[number];

/**
 * How long each step of a worker's start took, as far as it has got. `totalMs` is set once it has first asked for a
 * job.
 */
export interface ColdStart {
  readonly steps: Partial<Record<ColdStartStep, number>>;
  readonly totalMs: number | undefined;
  /** From the first request for a job to the first output. */
  readonly outputMs: number | undefined;
}

/** Created at 0, image ready at 900, container made at 950, started at 1,000, ready at 3,000: 900 + 50 + 50 + 2,000. */
export function coldStart(worker: Worker): ColdStart {
  const { createdAt, placedAt, imageAt, madeAt, startedAt, readyAt, outputAt } = worker;
  const times: Record<ColdStartStep, number | undefined> = {
    place: placedAt,
    image: imageAt,
    create: madeAt,
    start: startedAt,
    ready: readyAt,
  };
  const steps: Partial<Record<ColdStartStep, number>> = {};
  let before = createdAt;
  for (const step of coldStartSteps) {
    const at = times[step];
    if (at === undefined) continue;
    steps[step] = Math.max(0, at - before);
    before = at;
  }
  const since = (at: number | undefined, from: number | undefined) =>
    at === undefined || from === undefined ? undefined : Math.max(0, at - from);
  return { steps, totalMs: since(readyAt, createdAt), outputMs: since(outputAt, readyAt) };
}

/** What the start of a worker has reached, and when. */
export function startPhases({ placedAt, imageAt, madeAt, startedAt, readyAt }: Worker): { name: string; at: number }[] {
  const phases = { placed: placedAt, "image ready": imageAt, "container created": madeAt };
  return Object.entries({ ...phases, "process started": startedAt, "first take": readyAt }).flatMap(([name, at]) =>
    at === undefined ? [] : [{ name, at }],
  );
}

/** The values that 50, 90 and 99 % of all values do not exceed, by nearest rank. */
export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** Undefined if there are no values. */
export function percentiles(values: readonly number[]): Percentiles | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] as number;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}
