import { earliest } from "../../domain/earliest.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import type { Needs } from "../../operations/needs.js";
import type { Provider } from "../../provider.js";
import type { Tended } from "./tended.js";

/** Ended workers of one provider whose processes may still be there. */
interface Strays {
  readonly workers: Set<LiveWorker>;
  isEnding: boolean;
  /** When the provider is asked next: later if it does not answer, however often workers change. */
  nextAt: number;
}

/** Ends processes and containers of this host that belong to no live row. */
export function strayWorkers(
  needs: Needs<"registry" | "clock"> & { readonly tends: (hostNo: number) => boolean },
  provider: Provider,
  tended: Tended,
) {
  const { starting, busy, gone } = tended;
  /** By provider. */
  const strays = new Map<string, Strays>();
  /** How many ends were looked at. */
  let known = 0;

  /** Ends workers that others gave up on while this host was away. Returns when to look next. */
  async function endGivenUp(): Promise<number | undefined> {
    const { workers, n } = needs.registry.endings().after(known);
    known = n;
    for (const worker of workers) if (needs.tends(worker.row.hostNo)) straysWith(worker).workers.add(worker);
    return earliest(...(await Promise.all([...strays.values()].map(endSome))));
  }

  /** Those of its provider; a worker without a handle has none yet. */
  function straysWith({ row }: LiveWorker): Strays {
    const name = row.handle?.provider ?? "";
    const found = strays.get(name) ?? { workers: new Set(), isEnding: false, nextAt: 0 };
    strays.set(name, found);
    return found;
  }

  async function endSome(some: Strays): Promise<number | undefined> {
    if (some.isEnding || some.workers.size === 0) return undefined;
    if (needs.clock.now() < some.nextAt) return some.nextAt;
    some.isEnding = true;
    const left = some.workers.values();
    const endNext = async () => {
      for (const worker of left) {
        await tryToEnd(worker, some);
        if (needs.clock.now() < some.nextAt) return;
      }
    };
    await Promise.all(Array.from({ length: limits.straysAtOnce }, endNext));
    some.isEnding = false;
    if (some.workers.size === 0) return undefined;
    some.nextAt = Math.max(some.nextAt, needs.clock.now() + limits.straysGapMs);
    return some.nextAt;
  }

  async function tryToEnd(worker: LiveWorker, among: Strays): Promise<void> {
    const { id, secretHash, endedAt } = worker.row;
    const now = needs.clock.now();
    const isForgotten = needs.registry.worker(id) !== worker;
    if (isForgotten || endedAt === undefined) return void among.workers.delete(worker);
    const isStarting = starting.get(id);
    if (isStarting) return void isStarting.abort(); // the start notices that the worker has ended
    if (secretHash === undefined) {
      // nothing was started for it, unless a row with a secret is still to be read
      if (now >= endedAt + limits.endedWorkersReadMs) among.workers.delete(worker);
      return;
    }
    if (busy.has(id)) return;
    busy.add(id);
    try {
      await endOne(worker);
      among.workers.delete(worker);
    } catch {
      among.nextAt = needs.clock.now() + limits.netMs;
      among.workers.delete(worker);
      among.workers.add(worker); // last: the failure may be its own
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
