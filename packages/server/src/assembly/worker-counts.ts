import { workerState } from "../domain/workers/worker.js";
import type { Needs } from "../operations/needs.js";

/** The number of an endpoint's workers in each state. */
export async function workerCounts(
  { registry, tallies }: Needs<"registry" | "tallies">,
  endpointNo: number,
): Promise<ReadonlyMap<string, number>> {
  const held = await tallies.holdings(endpointNo);
  const counts = new Map<string, number>();
  for (const { row } of registry.workersOf(endpointNo)) {
    const state = workerState(row, held.get(row.no) ?? 0);
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return counts;
}
