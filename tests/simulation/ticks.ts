import type { Scene } from "./invariants.js";

/** How often a loop may tick within ten seconds in which little happens. */
const ticksMax = 60;

/** Counts the ticks of each loop. */
export class Ticks {
  #window = 0;
  #changesBefore = 0;
  readonly #counts = new Map<string, number>();

  count = (loop: string): void => void this.#counts.set(loop, (this.#counts.get(loop) ?? 0) + 1);

  /** Checks that a loop ticks little more often than something changes. */
  check({ now, ledger, broken }: Pick<Scene, "now" | "ledger" | "broken">): void {
    const window = Math.floor(now() / 10_000);
    if (window === this.#window) return;
    const changes = ledger.changes - this.#changesBefore;
    for (const [loop, ticks] of this.#counts)
      if (ticks > ticksMax + 4 * changes) broken("loops are quiet", `${loop}: ${ticks} ticks for ${changes} changes`);
    this.#window = window;
    this.#changesBefore = ledger.changes;
    this.#counts.clear();
  }
}
