import type { WorkersDoor } from "../edges/worker-protocol/door.js";
import type { Registry } from "../memory/registry.js";
import type { Parts } from "../operations/needs.js";
import { settleOrphans } from "../operations/workers/worker-life.js";

/**
 * Lets workers on networks of their own that outlived the previous server call us again, so that no results are lost
 * until they are found.
 */
export async function openAgain(sideDoor: WorkersDoor, registry: Registry, hostNo: number): Promise<void> {
  for (const { row } of registry.liveWorkers()) {
    const url = row.hostNo === hostNo && row.handle?.network ? row.workerUrl : undefined;
    if (url !== undefined) await sideDoor.open(new URL(url).hostname).catch(() => {});
  }
}

/** Resumes what a previous server has begun: jobs without a holder. */
export async function goOn(parts: Parts): Promise<void> {
  await settleOrphans(parts, await parts.reader.orphaned(), true);
}
