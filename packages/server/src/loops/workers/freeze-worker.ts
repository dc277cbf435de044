import { topics } from "../../bell.js";
import { PlainSignal } from "../../clock.js";
import { untoldGpu } from "../../domain/hosts/gpu.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { closeWorker, resumeWorker, stopWorker } from "../../operations/workers/worker-life.js";
import type { Provider } from "../../provider.js";

type Freezing = Needs<"reader" | "clock" | "bell" | "registry" | "emit" | "here">;
type Losing = Freezing & Needs<"jobs">;

/**
 * Freezes a worker that holds nothing. Its open polls are answered then, so that it polls again as soon as it wakes.
 */
export async function freeze(needs: Freezing, provider: Provider, worker: LiveWorker): Promise<void> {
  const { row } = worker;
  // once this is written, no take gives it a job
  if (!(await needs.registry.changeWorker(worker, { by: "freeze" }))) return;
  if ((await needs.reader.heldBy(row.no)).length > 0) {
    await resumeWorker(needs, worker, "it took a job at the last moment");
  } else {
    await provider.pause(row.id);
    worker.dismissed.abort();
  }
  needs.bell.ring(topics.demand(row.endpointNo)); // it is kept for a limited time; or its last job ended unnoticed
}

/** Resumes a frozen worker; it must call the server soon. */
export async function thaw(needs: Freezing, provider: Provider, worker: LiveWorker): Promise<void> {
  // a poll that arrived while it was about to be frozen is in no line: end it, so that the worker polls again
  worker.dismissed.abort();
  worker.dismissed = new PlainSignal();
  await provider.resume(worker.row.id);
  needs.bell.ring("workers");
}

/** When this host runs out of memory, stops the worker that has been paused longest. Returns when to look next. */
export async function easeMemory(
  needs: Freezing & Needs<"jobs">,
  mine: readonly LiveWorker[],
  now: number,
): Promise<number | undefined> {
  const paused = mine.filter(({ row }) => row.wanted === "paused");
  const [longest] = paused.sort((a, b) => (a.row.pausedAt ?? 0) - (b.row.pausedAt ?? 0));
  if (!longest) return undefined;
  // a worker that is being stopped frees its memory when it has ended
  const isGoing = mine.some(({ row }) => row.wanted === "stopped");
  if (!isGoing && needs.here.freeMemoryShare() < limits.memoryLowShare)
    await stopWorker(needs, longest, "the memory of its host runs out", needs.here.stopGraceMs);
  return now + limits.memoryLookMs;
}

/** Handles the loss of a worker's GPU: the worker gets no more jobs, and a frozen one is stopped. */
export async function noteLostGpus(needs: Losing, worker: LiveWorker): Promise<void> {
  const { gpus, gpusUnseen } = needs.here.facts();
  if (gpusUnseen) return;
  const { row } = worker;
  const lost = row.resources?.gpus.find(({ id }) => id !== untoldGpu && !gpus.some((gpu) => gpu.id === id));
  if (!lost) return;
  const why = `its GPU ${lost.id} (${lost.name}) is gone`;
  // recorded last: if we die in between, the next server does all of this again
  if (row.wanted === "paused") await stopWorker(needs, worker, why, needs.here.stopGraceMs);
  else await closeWorker(needs, worker, why);
  if (row.trouble !== undefined) return;
  await needs.registry.changeWorker(worker, { by: "unhealthy", trouble: { at: needs.clock.now(), why } });
}
