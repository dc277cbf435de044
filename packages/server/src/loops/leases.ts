import type { Clock } from "../clock.js";
import type { Needs } from "../operations/needs.js";
import { type Loop, runLoop } from "./loop.js";

/** The names of the loops about a cluster, each of which only one of the servers that reach it runs. */
export const clusterLoops = (hostNo: number) =>
  ({ tend: `tend-cluster-${hostNo}`, clearVolumes: `clear-cluster-volumes-${hostNo}` }) as const;

/** The loops that only one of the servers runs, besides those. */
export const ownedLoops: readonly string[] = [
  "scale",
  "watch-workers",
  "deliver-webhooks",
  "expire-jobs",
  "time-out-jobs",
  "clear-deleted",
  "end-due-pods",
  "meter-usage",
];

/** Which loops this server owns. An owner that cannot renew its lease stops before another server may begin. */
export class Leases {
  /** What this server would own. */
  readonly names: readonly string[];
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #held: ReadonlySet<string> = new Set();
  #untilAt = 0;
  #resigned = false;
  #isWatched = false;

  constructor(clock: Clock, names: readonly string[] = ownedLoops) {
    this.#clock = clock;
    this.names = names;
  }

  has(name: string): boolean {
    return this.#held.has(name) && this.#clock.now() < this.#untilAt;
  }

  /** Whether this server is stopping: it owns nothing any more, and wants no more workers. */
  get isResigned(): boolean {
    return this.#resigned;
  }

  /** Gives up all loops; another server takes them over at its next beat. */
  resign(): void {
    this.#resigned = true;
    this.hold(new Set(), 0);
  }

  /** Sets which loops this server owns, and until when. */
  hold(names: ReadonlySet<string>, untilAt: number): void {
    this.#held = this.#resigned ? new Set() : names;
    this.#untilAt = untilAt;
    if (this.#held.size > 0) this.#watchEnd();
    this.#tell();
  }

  /** Tells of the end of what is held when it comes: a renewal may neither succeed nor fail for a long time. */
  #watchEnd(): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    this.#clock.after(Math.max(1, this.#untilAt - this.#clock.now()), () => {
      this.#isWatched = false;
      if (this.#clock.now() < this.#untilAt) this.#watchEnd();
      else this.#tell();
    });
  }

  /** Calls `listener` whenever ownership changes. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/**
 * Runs a loop while this server owns it. Each time it becomes the owner, a new loop starts without state. Without
 * leases there is only one server, and it owns everything.
 */
export async function runOwned(
  make: () => Loop,
  leases: Leases | undefined,
  needs: Needs<"bell" | "clock" | "emit">,
  signal: AbortSignal,
): Promise<void> {
  if (!leases) return runLoop(make(), needs, signal);
  for (let loop = make(); ; loop = make()) {
    const { name, tick } = loop;
    if (!leases.names.includes(name)) throw new Error(`no server would ever own the loop '${name}'`);
    await becomesOwner(leases, name, signal);
    if (signal.aborted) return;
    const term = new AbortController();
    const end = () => term.abort();
    signal.addEventListener("abort", end, { once: true });
    const off = leases.onChange(() => {
      if (!leases.has(name)) end();
    });
    try {
      const guarded = async (now: number, over: AbortSignal) => (leases.has(name) ? tick(now, over) : now);
      await runLoop({ ...loop, tick: guarded }, needs, term.signal);
    } finally {
      off();
      signal.removeEventListener("abort", end);
    }
  }
}

function becomesOwner(leases: Leases, name: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      if (!leases.has(name) && !signal.aborted) return;
      off();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const off = leases.onChange(done);
    signal.addEventListener("abort", done);
    done();
  });
}
