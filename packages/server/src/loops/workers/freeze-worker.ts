import { topics } from "../../bell.js";
import { PlainSignal } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import { closeWorker, resumeWorker, stopWorker } from "../../operations/workers/worker-life.js";
import type { Provider } from "../../provider.js";

type Freezing = Needs<"reader" | "clock" | "bell" | "registry" | "emit" | "place">;
type Losing = Freezing & Needs<"jobs">;

/** Freezes a worker that holds nothing; what it asked before is answered then, so that it asks again as soon as it wakes. */
export async function freeze(needs: Freezing, provider: Provider, worker: LiveWorker): Promise<void> {
  const { row } = worker;
  // when this is written no take gives it a job any more
  if (!(await needs.registry.changeWorker(worker, { by: "freeze" }))) return;
  if ((await needs.reader.heldBy(row.no)).length > 0) {
    await resumeWorker(needs, worker, "it took a job at the last moment");
  } else {
    await provider.pause(row.id);
    worker.dismissed.abort();
  }
  needs.bell.ring(topics.demand(row.endpointNo)); // it is kept for a time; or its job is over, and is not heard of any more
}

/** Lets a frozen worker go on; it has to say something soon. */
export async function thaw(needs: Freezing, provider: Provider, worker: LiveWorker): Promise<void> {
  // a poll that came while it was to be frozen stands in no line: it comes again
  worker.dismissed.abort();
  worker.dismissed = new PlainSignal();
  await provider.resume(worker.row.id);
  needs.bell.ring("workers");
}

/** Where this host runs out of memory, the worker that is paused for the longest time gives its own back. Returns when to look next. */
export async function easeMemory(
  needs: Freezing & Needs<"jobs">,
  mine: readonly LiveWorker[],
  now: number,
): Promise<number | undefined> {
  const paused = mine.filter(({ row }) => row.wanted === "paused");
  const [longest] = paused.sort((a, b) => (a.row.pausedAt ?? 0) - (b.row.pausedAt ?? 0));
  if (!longest) return undefined;
  // what one that goes holds is free when it has ended
  const isGoing = mine.some(({ row }) => row.wanted === "stopped");
  if (!isGoing && needs.place.freeMemoryShare() < limits.memoryLowShare)
    await stopWorker(needs, longest, "the memory of its host runs out", needs.place.stopGraceMs);
  return now + limits.memoryLookMs;
}

/** A GPU that fell off takes its worker with it: it gets no more jobs, and one that is frozen has nothing to wake for. */
export async function noteLostGpus(needs: Losing, worker: LiveWorker): Promise<void> {
  const { gpus, gpusUnseen } = needs.place.facts();
  if (gpusUnseen) return;
  const { row } = worker;
  const lost = row.resources?.gpus.find(({ id }) => !gpus.some((gpu) => gpu.id === id));
  if (!lost) return;
  const why = `its GPU ${lost.id} (${lost.name}) is gone`;
  // what is known against it is written last: where we die in between, the next server does all of it
  if (row.wanted === "paused") await stopWorker(needs, worker, why, needs.place.stopGraceMs);
  else await closeWorker(needs, worker, why);
  if (row.trouble !== undefined) return;
  await needs.registry.changeWorker(worker, { by: "unhealthy", trouble: { at: needs.clock.now(), why } });
}
