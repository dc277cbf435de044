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
  const idle = workers.filter((row) => workerState(row, held.get(row.no) ?? 0) === "idle");
  const isStopping = async ({ no }: Worker) => (await reader.heldBy(no)).some(({ stopWanted }) => stopWanted);
  const found = await Promise.all(idle.map(async (row) => ((await isStopping(row)) ? [row.no] : [])));
  return new Set(found.flat());
}
