import { type Health, isHealthTrouble, replaceAt, troubleOf } from "../../domain/workers/health.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../needs.js";
import { noteCall, stopWorker } from "./worker-life.js";

type Hearing = Needs<"gate" | "registry" | "clock" | "bell" | "emit" | "here" | "jobs" | "reader">;

/**
 * Takes the outcome of a worker's health check: opens the worker to requests or shuts it; its first 200 makes it ready.
 */
export async function hearHealth(needs: Hearing, worker: LiveWorker, health: Health): Promise<void> {
  const { gate, clock, registry, here, emit } = needs;
  const { row } = worker;
  if (row.endedAt !== undefined) return;
  if (health.isOpen && health.failures === 0 && !health.unreached) {
    const noted = row.readyAt === undefined ? noteCall(needs, worker, { isTake: true }) : undefined;
    worker.seenAt = clock.now();
    gate.open(worker); // waiting requests need not wait for the disk
    await noted;
  } else if (!health.isOpen) {
    gate.shut(row.no);
  }
  if (!here.tends(row.hostNo)) return;
  const why = troubleOf(health);
  const { trouble } = worker.row;
  if (why === undefined) {
    if (trouble && isHealthTrouble(trouble.why) && !health.unreached)
      await registry.changeWorker(worker, { by: "healthy", trouble: undefined });
    return;
  }
  if (trouble?.why === why) return;
  const detail = health.unreached ? ` (${health.unreached.detail})` : "";
  emit({ type: "server.warning", message: `worker ${row.id} is unhealthy: ${why}${detail}` });
  await registry.changeWorker(worker, { by: "unhealthy", trouble: { at: clock.now(), why } });
}

/**
 * Stops a worker that has been unhealthy too long, or a replaced worker whose requests in flight do not end. Resolves
 * with the time of the next look.
 */
export async function judgeHealth(needs: Hearing, worker: LiveWorker, health: Health): Promise<number | undefined> {
  const { row } = worker;
  const now = needs.clock.now();
  // a host that cannot reach another host's worker must not stop it
  if (!needs.here.tends(row.hostNo) || row.wanted === "stopped" || row.wanted === "paused") return undefined;
  const patienceMs = needs.registry.endpointByNo(row.endpointNo)?.settings.executionTimeoutMs ?? 0;
  const held = needs.gate.heldBy(row.no);
  const unhealthyAt = replaceAt(health, held > 0, patienceMs);
  const drainMs = needs.gate.hasOnlySockets(row.no) ? limits.gateDrainMs : Math.max(patienceMs, limits.gateDrainMs);
  const drainedAt = row.closedAt === undefined ? undefined : row.closedAt + drainMs;
  const [dueAt, why] =
    drainedAt !== undefined
      ? [drainedAt, "its requests in flight did not end in time"]
      : [unhealthyAt, "it has not answered GET /ping with 200 for too long"];
  if (dueAt === undefined || now < dueAt) return dueAt;
  await stopWorker(needs, worker, why, needs.here.stopGraceMs);
  return undefined;
}

/** Records a worker's first answered request: its end is no failed start any more. */
export async function noteServed({ registry, clock }: Needs<"registry" | "clock">, worker: LiveWorker): Promise<void> {
  if (worker.row.lastDoneAt !== undefined) return;
  await registry.changeWorker(worker, { by: "done", lastDoneAt: clock.now() });
}
