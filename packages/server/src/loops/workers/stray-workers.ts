import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import type { Provider } from "../../provider.js";
import type { Tended } from "./tended.js";

/** Ends processes and containers of this host that belong to no live row. */
export function strayWorkers(
  needs: Needs<"registry" | "clock"> & { readonly tends: (hostNo: number) => boolean },
  provider: Provider,
  tended: Tended,
) {
  const { starting, busy, gone } = tended;
  /** Ended workers of this host whose processes may still be there. */
  const unburied = new Set<LiveWorker>();
  let known = 0;
  let isEnding = false;
  /** When the provider is asked again, which was away: not for each worker, and not whenever any worker changes. */
  let askAgainAt = 0;

  /** Ends workers that others gave up on while this host was away. Returns when to look next. */
  async function endGivenUp(): Promise<number | undefined> {
    const { workers, n } = needs.registry.endings().after(known);
    known = n;
    for (const worker of workers) if (needs.tends(worker.row.hostNo)) unburied.add(worker);
    if (isEnding || unburied.size === 0) return undefined;
    if (needs.clock.now() < askAgainAt) return askAgainAt;
    isEnding = true;
    const left = unburied.values();
    const next = async () => {
      for (const worker of left) {
        await tryToEnd(worker);
        if (needs.clock.now() < askAgainAt) return;
      }
    };
    await Promise.all(Array.from({ length: limits.straysAtOnce }, next));
    isEnding = false;
    return unburied.size > 0 ? needs.clock.now() + limits.netMs : undefined;
  }

  async function tryToEnd(worker: LiveWorker): Promise<void> {
    const { id, secretHash, endedAt } = worker.row;
    const isStarting = starting.get(id);
    if (isStarting && endedAt !== undefined) return void isStarting.abort(); // the start notices that the worker has ended
    const isForgotten = needs.registry.worker(id) !== worker;
    if (isForgotten || endedAt === undefined || secretHash === undefined) return void unburied.delete(worker);
    if (busy.has(id)) return;
    busy.add(id);
    try {
      await endOne(worker);
      unburied.delete(worker);
    } catch {
      askAgainAt = needs.clock.now() + limits.netMs;
      unburied.delete(worker);
      unburied.add(worker); // last: the failure may be its own
    } finally {
      busy.delete(id);
    }
  }

  async function endOne(worker: LiveWorker): Promise<void> {
    const { id, handle } = worker.row;
    const seen = await provider.look(id, handle);
    if (seen.state === "running") await provider.kill(id, handle);
    if (seen.state !== "unknown") await tended.forget(worker);
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
