import type { Random } from "../faults/random.js";

/** A job's input: instructions for its worker. */
export interface Recipe {
  readonly ms: number;
  readonly chunks: number;
  /** `none`: it never ends; `crash`: its worker dies with it. */
  readonly ends: "output" | "error" | "none" | "crash";
}

/** The character of a worker, drawn once for each. */
export function fate(random: Random) {
  const isFlawed = random.chance(0.5);
  const flaw = (chance: number) => (isFlawed && random.chance(0.4) ? chance : 0);
  return {
    startMs: random.pick([5, 300, 2_500]),
    pings: random.chance(0.85),
    slots: random.pick([1, 1, 3]),
    obeysStops: random.chance(0.6),
    obeysTerm: random.chance(0.85),
    /** Keeps a result until it is acknowledged; other workers drop a result that is refused. */
    keepsResults: random.chance(0.6),
    wireMs: random.pick([0, 0, 0, 40, 6_000]),
    losesResult: flaw(0.3),
    repeatsResult: flaw(0.5),
    dropsAnswer: flaw(0.3),
    forgetsInPings: flaw(0.7),
    deniesJobs: flaw(0.4),
    listsStrangers: flaw(0.3),
  };
}
