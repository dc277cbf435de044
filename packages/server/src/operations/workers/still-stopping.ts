import { type Worker, workerState } from "../../domain/workers/worker.js";
import type { Needs } from "../needs.js";

/**
 * The workers that hold no job, but still run one that was stopped: cancelled, timed out or deleted. They take none
 * before its handler ends, unless they run several at a time.
 */
export async function stillStopping(
  { reader }: Needs<"reader">,
  workers: readonly Worker[],
  held: ReadonlyMap<number, number>,
): Promise<ReadonlySet<number>> {
  const isIdle = (row: Worker) => workerState(row, held.get(row.no) ?? 0) === "idle";
  const idle = new Set(workers.filter(isIdle).map(({ no }) => no));
  if (idle.size === 0) return idle;
  const unstopped = new Set((await reader.unstopped()).map(({ workerNo }) => workerNo));
  return new Set([...idle].filter((no) => unstopped.has(no)));
}
