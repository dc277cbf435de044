import type { ApiKey } from "../../domain/access/key.js";
import { isPod } from "../../domain/pods/pod.js";
import { workerState } from "../../domain/workers/worker.js";
import { Refusal } from "../../errors.js";
import { auditing } from "../../store/audit.js";
import { type Caller, changeAs } from "../access/change-as.js";
import type { LiveWorker, Needs } from "../needs.js";
import { ownWorker, showWorker } from "./show-workers.js";
import { closeWorker, pauseWorker, stopWorker } from "./worker-life.js";

type Stopping = Needs<"registry" | "clock" | "bell" | "emit" | "here" | "tallies" | "jobs" | "reader">;

const refused = (why: string) => new Refusal("INVALID_STATE", why);

/**
 * Stops a worker: one that is busy finishes its jobs first, or with `isNow` gives them back. The scaler starts another
 * one if it is needed.
 */
export const stopByHand = (needs: Stopping, asking: Caller, workerId: string, { isNow }: { isNow: boolean }) =>
  changed(needs, asking, workerId, async ({ worker }) => {
    const why = "stopped by hand";
    auditing.note({ action: "worker.stop", resource: workerId, ...(isNow ? { after: { now: true } } : {}) });
    // one that takes no jobs now holds none
    if (isNow || worker.row.readyAt === undefined || worker.row.wanted === "paused")
      await stopWorker(needs, worker, why, needs.here.stopGraceMs);
    else await closeWorker(needs, worker, why);
  });

/** Pauses an idle worker, with its memory kept. The scaler resumes it for the next job. */
export const pauseByHand = (needs: Stopping, asking: Caller, workerId: string) =>
  changed(needs, asking, workerId, async ({ worker, endpoint }) => {
    if (endpoint.settings.flashBootType === "OFF" || endpoint.settings.type !== "QB")
      throw refused(
        "Only workers of queue endpoints with FlashBoot can be paused: stop this one, or turn FlashBoot on.",
      );
    if (worker.row.handle?.isUnfreezable) throw refused("This worker cannot be paused on its host: stop it.");
    const held = (await needs.tallies.holdings(endpoint.no)).get(worker.row.no) ?? 0;
    const state = workerState(worker.row, held);
    if (state !== "idle") throw refused(`Only an idle worker can be paused, and this one is ${state}.`);
    auditing.note({ action: "worker.pause", resource: workerId });
    await pauseWorker(needs, worker, "paused by hand");
  });

type Owned = Awaited<ReturnType<typeof ownWorker>>;

/** Changes a worker that still lives, and shows it as it is then. */
function changed(
  needs: Stopping,
  asking: Caller,
  workerId: string,
  change: (owned: Owned & { readonly worker: LiveWorker }) => Promise<void>,
) {
  return changeAs(needs, asking, async (caller: ApiKey) => {
    const owned = await ownWorker(needs, caller, workerId);
    if (isPod(owned.endpoint)) throw refused("This worker is a pod's container: stop the pod.");
    const worker = needs.registry.workerByNo(owned.row.no);
    if (!worker || worker.row.wanted === "stopped") throw refused("This worker is stopping, or has ended.");
    await change({ ...owned, worker });
    return showWorker(needs, caller, workerId);
  });
}
