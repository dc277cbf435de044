import { limits } from "../limits/index.js";
import type { Parts } from "../operations/needs.js";
import { stopWorker } from "../operations/workers/worker-life.js";

/** Asks this host's workers to stop and waits until all have ended; those left after the grace are killed. */
export async function stopWorkers(parts: Parts, graceMs: number): Promise<void> {
  const ours = () => parts.registry.liveWorkers().filter(({ row }) => parts.here.tends(row.hostNo));
  for (const worker of ours()) await stopWorker(parts, worker, "the server stops", graceMs);
  const deadline = parts.clock.now() + graceMs + limits.netMs;
  while (ours().length > 0 && parts.clock.now() < deadline) {
    // another server may just have given us one
    for (const worker of ours())
      if (worker.row.wanted !== "stopped") await stopWorker(parts, worker, "the server stops", graceMs);
    await parts.clock.sleep(limits.loopGapMs);
  }
}
