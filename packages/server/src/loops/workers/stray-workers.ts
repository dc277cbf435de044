import { earliest } from "../../domain/earliest.js";
import { limits } from "../../limits/index.js";
import { EndMarks } from "../../memory/end-marks.js";
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
  /** Ended workers whose processes are known to be gone. */
  const buried = new EndMarks();
  /** Ended workers whose provider was away, with the time to ask it again. */
  const askAgainAt = new WeakMap<LiveWorker, number>();

  /** Ends workers that others gave up on while this host was away. Returns when to look next. */
  async function endGivenUp(): Promise<number | undefined> {
    const now = needs.clock.now();
    const strays: LiveWorker[] = [];
    let nextAt: number | undefined;
    for (const worker of needs.registry.endedWorkers()) {
      if (buried.has(worker) || !needs.tends(worker.row.hostNo)) continue;
      const dueAt = askAgainAt.get(worker) ?? now;
      if (dueAt <= now) strays.push(worker);
      else nextAt = earliest(nextAt, dueAt);
    }
    const next = async () => {
      for (let worker = strays.pop(); worker; worker = strays.pop()) {
        const againAt = await tryToEnd(worker);
        nextAt = earliest(nextAt, againAt);
      }
    };
    await Promise.all(Array.from({ length: limits.straysAtOnce }, next));
    return nextAt;
  }

  async function tryToEnd(worker: LiveWorker): Promise<number | undefined> {
    const { id, secretHash } = worker.row;
    const isStarting = starting.get(id);
    if (isStarting) return void isStarting.abort(); // the start notices that the worker has ended
    if (secretHash === undefined || busy.has(id)) return undefined;
    busy.add(id);
    try {
      return void (await endOne(worker));
    } catch {
      // its provider is away, and must not be asked for each of them whenever any worker changes
      const againAt = needs.clock.now() + limits.netMs;
      askAgainAt.set(worker, againAt);
      return againAt;
    } finally {
      busy.delete(id);
    }
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
