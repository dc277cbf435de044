import { EndMarks } from "../../memory/end-marks.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import type { Provider } from "../../provider.js";
import type { Tended } from "./tended.js";

/** Ends processes and containers of this host that belong to no live row. */
export function strayWorkers(
  needs: Needs<"registry"> & { readonly tends: (hostNo: number) => boolean },
  provider: Provider,
  tended: Tended,
) {
  const { starting, busy, gone } = tended;
  /** Ended workers whose processes are known to be gone. */
  const buried = new EndMarks();

  /** Ends workers that others gave up on while this host was away. */
  async function endGivenUp(): Promise<void> {
    const strays: LiveWorker[] = [];
    for (const worker of needs.registry.endedWorkers())
      if (!buried.has(worker) && needs.tends(worker.row.hostNo)) strays.push(worker);
    await Promise.all(
      strays.map(async (worker) => {
        const { id, secretHash } = worker.row;
        const isStarting = starting.get(id);
        if (isStarting) return isStarting.abort(); // the start notices that the worker has ended
        if (secretHash === undefined || busy.has(id)) return;
        busy.add(id);
        try {
          await endOne(worker);
        } catch {
          // its provider is away: retried at the next look
        } finally {
          busy.delete(id);
        }
      }),
    );
  }

  async function endOne(worker: LiveWorker): Promise<void> {
    const { id, handle, endedAt } = worker.row;
    const seen = await provider.look(id, handle);
    if (seen.state === "running") await provider.kill(id, handle);
    if (seen.state !== "unknown") await tended.forget(worker);
    buried.add(worker, endedAt);
  }

  /**
   * Ends workers that a provider reports but no row wants: abandoned starts, or leftovers of this host's earlier run.
   */
  async function endUnwanted(): Promise<void> {
    const unwanted = [...gone].filter((workerId) => {
      const worker = needs.registry.worker(workerId);
      return !starting.has(workerId) && (!worker || worker.row.endedAt !== undefined);
    });
    for (const workerId of unwanted) gone.delete(workerId);
    await Promise.all(
      unwanted.map(async (workerId) => {
        try {
          const seen = await provider.look(workerId);
          if (seen.state === "running") await provider.kill(workerId, seen.handle);
          else await provider.forget(workerId);
        } catch {
          // its provider is away, and reports it again when it is back
        }
      }),
    );
  }

  return { endGivenUp, endUnwanted };
}
