import type { Clock } from "../clock.js";
import type { Needs } from "../operations/needs.js";
import { type Loop, runLoop } from "./loop.js";

/** Which loops this server owns. An owner that could not renew its lease stops before another may begin. */
export class Leases {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #held: ReadonlySet<string> = new Set();
  #untilAt = 0;
  #resigned = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(name: string): boolean {
    return this.#held.has(name) && this.#clock.now() < this.#untilAt;
  }

  /** Whether this server stops: it owns nothing any more, and wants no more workers. */
  get isResigned(): boolean {
    return this.#resigned;
  }

  /** Gives everything up: what this server owned is another's from its next beat on. */
  resign(): void {
    this.#resigned = true;
    this.hold(new Set(), 0);
  }

  /** These are ours until then. */
  hold(names: ReadonlySet<string>, untilAt: number): void {
    this.#held = this.#resigned ? new Set() : names;
    this.#untilAt = untilAt;
    this.#tell();
  }

  /** The lease could not be renewed. */
  check(): void {
    if (this.#clock.now() >= this.#untilAt) this.#tell();
  }

  /** Calls `listener` whenever something was taken or lost. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/**
 * Runs a loop while this server owns it; each time it becomes the owner the loop begins anew, knowing nothing.
 * Without leases there is one server, and it owns everything.
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
