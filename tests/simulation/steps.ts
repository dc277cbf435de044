import { type Random, seeded } from "../faults/random.js";
import { receivers } from "./receiver.js";
import type { Recipe } from "./worker-fate.js";

/** One thing that happens in a history. `pick` chooses among what there is; `at` names an endpoint. */
export type Step = (
  | {
      readonly do: "submit";
      readonly at: number;
      readonly recipe: Recipe;
      readonly key?: number;
      readonly webhook?: (typeof receivers)[number];
      readonly policy: { readonly ttl?: number; readonly executionTimeout?: number; readonly lowPriority?: boolean };
      readonly waitMs?: number;
    }
  | { readonly do: "repeat" | "cancel" | "retry" | "stream" | "health"; readonly pick: number }
  | { readonly do: "misuse key"; readonly pick: number }
  | { readonly do: "wait" | "ttl" | "impatient"; readonly pick: number; readonly ms: number }
  | { readonly do: "lose stream"; readonly pick: number }
  | { readonly do: "purge" | "delete endpoint" | "create endpoint"; readonly at: number }
  | { readonly do: "save endpoint"; readonly at: number; readonly input: EndpointChange }
  | { readonly do: "crash worker" | "hang worker"; readonly pick: number }
  | { readonly do: "freeze worker"; readonly pick: number; readonly ms: number }
  | { readonly do: "sicken"; readonly ms: number }
  | { readonly do: "fail start" }
  | { readonly do: "kill server"; readonly calls: number; readonly downMs: number }
  | { readonly do: "stop server"; readonly downMs: number }
  | { readonly do: "freeze server" | "suspend"; readonly ms: number }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "next timer" }
) & {
  /** The next step comes before anything that follows from this one. */
  readonly together?: boolean;
};

export interface EndpointChange {
  readonly workersMin?: number;
  readonly workersMax?: number;
  readonly scalerType?: "QUEUE_DELAY" | "REQUEST_COUNT";
  readonly scalerValue?: number;
  readonly idleTimeout?: number;
  readonly env?: Record<string, string>;
}

/** A history to run: everything follows from it. */
export interface Script {
  readonly seed: number;
  readonly endpoints: readonly EndpointChange[];
  /** Whether the store's calls are held up by some turns. */
  readonly delays: boolean;
  readonly steps: readonly Step[];
}

const anything = 1_000;

function recipe(random: Random): Recipe {
  return {
    ms: random.pick([0, 5, 300, 3_000, 12_000, 45_000]),
    chunks: random.pick([0, 0, 0, 1, 4]),
    ends: random.pick(["output", "output", "output", "output", "output", "error", "none", "crash"]),
  };
}

function submission(random: Random): Step {
  const ttl = random.chance(0.15) ? random.pick([10_000, 20_000, 90_000]) : undefined;
  const executionTimeout = random.chance(0.5) ? random.pick([5_000, 20_000, 60_000]) : undefined;
  return {
    do: "submit",
    at: random.whole(0, 1),
    recipe: recipe(random),
    ...(random.chance(0.3) ? { key: random.whole(0, 4) } : {}),
    ...(random.chance(0.3) ? { webhook: random.pick(receivers) } : {}),
    ...(random.chance(0.3) ? { waitMs: random.pick([1_000, 20_000, 300_000]) } : {}),
    policy: {
      ...(ttl === undefined ? {} : { ttl }),
      ...(executionTimeout === undefined ? {} : { executionTimeout }),
      ...(random.chance(0.15) ? { lowPriority: true } : {}),
    },
  };
}

function settings(random: Random): EndpointChange {
  const workersMax = random.pick([0, 1, 1, 2, 2, 3, 3]);
  return {
    workersMax,
    workersMin: random.chance(0.2) ? Math.min(1, workersMax) : 0,
    scalerType: random.pick(["QUEUE_DELAY", "REQUEST_COUNT"]),
    scalerValue: random.pick([1, 2, 4]),
    idleTimeout: random.pick([1, 5, 30]),
    ...(random.chance(0.4) ? { env: { VERSION: String(random.whole(0, anything)) } } : {}),
  };
}

const passing = [1, 20, 40, 100, 400, 1_000, 2_000, 5_000, 9_000, 20_000, 40_000];

/** What may happen, and how often. */
const kinds: readonly (readonly [weight: number, draw: (random: Random) => Step])[] = [
  [36, submission],
  [30, (random) => ({ do: "pass", ms: random.pick(passing) })],
  [12, () => ({ do: "next timer" })],
  [4, (random) => ({ do: "repeat", pick: random.whole(0, anything) })],
  [1, (random) => ({ do: "misuse key", pick: random.whole(0, anything) })],
  [8, (random) => ({ do: "cancel", pick: random.whole(0, anything) })],
  [5, (random) => ({ do: "retry", pick: random.whole(0, anything) })],
  [4, (random) => ({ do: "wait", pick: random.whole(0, anything), ms: random.pick([1_000, 15_000, 300_000]) })],
  [1, (random) => ({ do: "impatient", pick: random.whole(0, anything), ms: random.pick([0, 500, 9_000]) })],
  [3, (random) => ({ do: "ttl", pick: random.whole(0, anything), ms: random.pick([10_000, 40_000, 3_600_000]) })],
  [4, (random) => ({ do: "stream", pick: random.whole(0, anything) })],
  [1, (random) => ({ do: "lose stream", pick: random.whole(0, anything) })],
  [1, (random) => ({ do: "health", pick: random.whole(0, anything) })],
  [1, (random) => ({ do: "purge", at: random.whole(0, 1) })],
  [1, (random) => ({ do: "delete endpoint", at: random.whole(0, 1) })],
  [1, (random) => ({ do: "create endpoint", at: random.whole(0, 1) })],
  [3, (random) => ({ do: "save endpoint", at: random.whole(0, 1), input: settings(random) })],
  [4, (random) => ({ do: "crash worker", pick: random.whole(0, anything) })],
  [2, (random) => ({ do: "hang worker", pick: random.whole(0, anything) })],
  [
    3,
    (random) => ({
      do: "freeze worker",
      pick: random.whole(0, anything),
      ms: random.pick([3_000, 15_000, 29_500, 50_000]),
    }),
  ],
  [1, (random) => ({ do: "sicken", ms: random.pick([3_000, 30_000]) })],
  [1, () => ({ do: "fail start" })],
  [
    4,
    (random) => ({
      do: "kill server",
      calls: random.pick([0, 1, 2, 3, 5, 8, 13, 40]),
      downMs: random.pick([0, 50, 1_500, 20_000, 400_000]),
    }),
  ],
  [2, (random) => ({ do: "stop server", downMs: random.pick([0, 1_500, 60_000]) })],
  [2, (random) => ({ do: "freeze server", ms: random.pick([500, 4_000, 8_000, 60_000]) })],
  [1, (random) => ({ do: "suspend", ms: random.pick([10_000, 3_600_000]) })],
];
const total = kinds.reduce((sum, [weight]) => sum + weight, 0);

function draw(random: Random): Step {
  let left = random.next() * total;
  for (const [weight, make] of kinds) {
    left -= weight;
    if (left < 0) return make(random);
  }
  return { do: "next timer" };
}

/** Draws a history from its seed. */
export function drawScript(seed: number): Script {
  const random = seeded(seed);
  const endpoints = [settings(random), settings(random)].slice(0, random.whole(1, 2));
  const steps = Array.from({ length: random.whole(12, 55) }, () => {
    const step = draw(random);
    return random.chance(0.2) ? { ...step, together: true } : step;
  });
  return { seed, endpoints, delays: random.chance(0.5), steps };
}
