import type { HostFacts } from "../domain/hosts/host.js";
import { type HostSettings, type Known, type StockChange, takeIn } from "../domain/hosts/stock.js";
import type { Emit } from "../events.js";
import type { Inventory } from "../host/inventory.js";
import { limits } from "../limits/index.js";
import type { Needs } from "../operations/needs.js";
import type { Loop } from "./loop.js";

/** Looks again and again at what a cluster has, while this server tends it. */
export function clusterStockLoop(
  { bell }: Needs<"bell">,
  cluster: { readonly no: number; readonly look: () => Promise<boolean>; readonly isTended: () => boolean },
): Loop {
  return {
    name: `cluster-stock-${cluster.no}`,
    topics: [],
    gapMs: limits.stockGapMs,
    async tick(now) {
      if (!cluster.isTended()) return now + limits.netMs;
      if (await cluster.look()) bell.ring("demand");
      return now + limits.clusterStockMs;
    },
  };
}

/** What this host has: looked at once before anything is given out, and then again and again. */
export class StockTaking {
  readonly #needs: Needs<"emit">;
  readonly #inventory: Inventory;
  readonly #settings: HostSettings;
  #known: Known | undefined;

  constructor(needs: Needs<"emit">, inventory: Inventory, settings: HostSettings) {
    this.#needs = needs;
    this.#inventory = inventory;
    this.#settings = settings;
  }

  /** What is known now; before the first look has ended, there is nothing to give out. */
  get facts(): HostFacts {
    const { location, enforceGpus } = this.#settings;
    return this.#known?.facts ?? { location, gpus: [], gpusEnforced: enforceGpus ?? true, cpus: 1, memoryMib: 0 };
  }

  /** Looks once; returns whether anything has changed. */
  async look(): Promise<boolean> {
    const before = this.#known;
    const change = takeIn(before, await this.#inventory.read(), this.#settings);
    this.#known = change.known;
    this.#tell(before, change);
    return JSON.stringify(before?.facts) !== JSON.stringify(change.known.facts);
  }

  /** Must be called with every event. A failed start may mean that this host has lost something since the last look. */
  readonly hear: Emit = (event) => {
    if (event.type !== "worker.startFailed") return;
    this.#isAsked = true;
    this.#wake();
  };

  /** Looks again, more often if there are GPUs, and calls `onChange` with what has changed. */
  loop(onChange: (facts: HostFacts) => void | Promise<void>): Loop {
    return {
      name: "take-stock",
      topics: [],
      gapMs: limits.stockGapMs,
      listen: (wake) => {
        this.#wake = wake;
        return () => {
          this.#wake = () => {};
        };
      },
      tick: async (now) => {
        // the first look was taken when the server started
        const isDue = this.#known === undefined || this.#isAsked || now >= (this.#lookAt ?? now + 1);
        this.#isAsked = false; // a start that fails during this look asks for another
        if (isDue && (await this.look())) await onChange(this.facts);
        if (isDue || this.#lookAt === undefined) this.#lookAt = now + this.#periodMs;
        return this.#lookAt;
      },
    };
  }
  /** When the next look is due unless one is asked for; undefined before the loop has begun. */
  #lookAt: number | undefined;
  #isAsked = false;
  #wake = () => {};

  get #periodMs(): number {
    return this.#known?.hasGpus ? limits.stockMs : limits.stockRareMs;
  }

  #tell(before: Known | undefined, { known, found, back, lost }: StockChange): void {
    const { emit } = this.#needs;
    for (const { id: gpuId, name, memoryMib, driver } of found)
      emit({ type: "gpu.found", gpuId, name, memoryMib, driver });
    for (const { id: gpuId, name } of back) emit({ type: "gpu.back", gpuId, name });
    for (const { gpu, why } of lost) emit({ type: "gpu.lost", gpuId: gpu.id, name: gpu.name, why });
    const { gpus, gpusEnforced, gpuProblem } = known.facts;
    if (before === undefined && gpus.length === 0) {
      const effect = gpusEnforced
        ? "workers of endpoints that ask for GPUs wait for one"
        : "the GPUs that endpoints ask for are recorded, but not enforced (MILLRACE_ENFORCE_GPUS)";
      emit({ type: "gpu.none", effect, why: gpuProblem, isMissed: gpusEnforced });
    } else if (gpuProblem !== undefined && gpuProblem !== before?.facts.gpuProblem && lost.length === 0) {
      emit({ type: "server.warning", message: gpuProblem });
    }
  }
}
