import { type Random, seeded } from "../faults/random.js";
import type { MachineShape } from "./machine.js";
import { receivers } from "./receiver.js";
import type { Recipe } from "./worker-fate.js";

/** One event of a history. `pick` chooses among the present candidates; `at` names an endpoint. */
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
  | { readonly do: "release"; readonly at: number; readonly version: string; readonly fails: boolean }
  | { readonly do: "roll back"; readonly at: number; readonly pick: number }
  | { readonly do: "lose gpu"; readonly pick: number; readonly ms: number }
  | { readonly do: "hang driver"; readonly ms: number }
  | { readonly do: "fail start" }
  | { readonly do: "kill server"; readonly calls: number; readonly downMs: number }
  /** Kills the server when it next freezes or resumes a worker. */
  | { readonly do: "kill freezing server"; readonly calls: number; readonly downMs: number }
  | { readonly do: "fail freeze"; readonly verb: "pause" | "resume" }
  | { readonly do: "stop server"; readonly downMs: number }
  | { readonly do: "freeze server" | "suspend"; readonly ms: number }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "next timer" }
) & {
  /** The next step comes before anything that follows from this step. */
  readonly together?: boolean;
};

export interface EndpointChange {
  readonly workersMin?: number;
  readonly workersMax?: number;
  readonly scalerType?: "QUEUE_DELAY" | "REQUEST_COUNT";
  readonly scalerValue?: number;
  readonly idleTimeout?: number;
  readonly env?: Record<string, string>;
  readonly flashBootType?: "OFF" | "FLASHBOOT" | "PRIORITY_FLASHBOOT";
  readonly computeType?: "GPU" | "CPU";
  readonly gpuCount?: number;
  readonly gpuTypeIds?: readonly string[];
  readonly vcpuCount?: number;
  readonly cpuFlavorIds?: readonly string[];
}

/** A history to run, which determines everything. */
export interface Script {
  readonly seed: number;
  readonly endpoints: readonly EndpointChange[];
  /** Whether the store's calls are delayed by some turns. */
  readonly delays: boolean;
  /** By default a machine without GPUs that has room for every worker. */
  readonly machine?: MachineShape;
  readonly steps: readonly Step[];
}

const anything = 1_000;

/** A history's emphasis: workers that are often frozen, or a machine on which workers wait for each other. */
interface Mood {
  readonly isSleepy: boolean;
  readonly isTight: boolean;
  /** On such a machine: whether processors are scarce rather than GPUs. */
  readonly isCpus: boolean;
}

function recipe(random: Random, { isSleepy }: Mood): Recipe {
  return {
    ms: random.pick(isSleepy ? [0, 5, 300, 3_000] : [0, 5, 300, 3_000, 12_000, 45_000]),
    chunks: random.pick([0, 0, 0, 1, 4]),
    ends: random.pick(
      isSleepy ? ["output"] : ["output", "output", "output", "output", "output", "error", "none", "crash"],
    ),
  };
}

function submission(random: Random, mood: Mood): Step {
  const ttl = random.chance(0.15) ? random.pick([10_000, 20_000, 90_000]) : undefined;
  const executionTimeout = random.chance(0.5) ? random.pick([5_000, 20_000, 60_000]) : undefined;
  return {
    do: "submit",
    at: random.whole(0, 1),
    recipe: recipe(random, mood),
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

const gpuNames = ["NVIDIA L4", "NVIDIA A40"] as const;
const [l4, a40] = gpuNames;

/** A machine on which workers have to wait for each other. */
const machine = (random: Random): MachineShape => ({
  gpus: random.pick([[l4, l4], [l4, a40], [l4], [l4]]),
  enforced: random.chance(0.85),
  cpus: 4,
  memoryMib: 16_384,
});

/** The resources that a worker needs. */
function needs(random: Random, { isCpus }: Mood): EndpointChange {
  if (random.chance(isCpus ? 0.85 : 0.1)) {
    const cpuFlavorIds = random.pick([["cpu3c"], ["cpu3c"], ["cpu3g"], ["cpu3m"]]);
    return { computeType: "CPU", vcpuCount: random.pick([2, 2, 4]), cpuFlavorIds };
  }
  const gpuTypeIds = random.pick([[], [], [l4], [a40, l4]]);
  return { computeType: "GPU", gpuCount: random.pick([1, 1, 1, 2]), gpuTypeIds };
}

function settings(random: Random, mood: Mood): EndpointChange {
  const { isSleepy } = mood;
  const workersMax = random.pick(isSleepy ? [1, 2, 2, 3] : [0, 1, 1, 2, 2, 3, 3]);
  return {
    workersMax,
    workersMin: random.chance(isSleepy ? 0.1 : 0.2) ? Math.min(1, workersMax) : 0,
    scalerType: random.pick(["QUEUE_DELAY", "REQUEST_COUNT"]),
    scalerValue: random.pick([1, 2, 4]),
    idleTimeout: isSleepy ? 1 : random.pick([1, 5, 30]),
    flashBootType: random.pick([isSleepy ? "FLASHBOOT" : "OFF", "OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"]),
    ...(random.chance(0.4) ? { env: { VERSION: String(random.whole(0, anything)) } } : {}),
    ...(mood.isTight && random.chance(0.9) ? needs(random, mood) : {}),
  };
}

const passing = [1, 20, 40, 100, 400, 1_000, 2_000, 5_000, 9_000, 20_000, 40_000];

/** The possible steps, with their weights. */
const kinds: readonly (readonly [weight: number, draw: (random: Random, mood: Mood) => Step])[] = [
  [36, submission],
  [30, (random, { isSleepy }) => ({ do: "pass", ms: random.pick(isSleepy ? passing.slice(4, 9) : passing) })],
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
  [3, (random, mood) => ({ do: "save endpoint", at: random.whole(0, 1), input: settings(random, mood) })],
  [3, (random) => ({ do: "release", at: random.whole(0, 1), version: version(random), fails: random.chance(0.4) })],
  [1, (random) => ({ do: "roll back", at: random.whole(0, 1), pick: random.whole(0, anything) })],
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
  [
    3,
    (random) => ({
      do: "kill freezing server",
      calls: random.pick([0, 0, 1, 2, 3, 5]),
      downMs: random.pick([0, 50, 1_500, 20_000]),
    }),
  ],
  [1, (random) => ({ do: "fail freeze", verb: random.pick(["pause", "resume"]) })],
  [2, (random) => ({ do: "stop server", downMs: random.pick([0, 1_500, 60_000]) })],
  [2, (random) => ({ do: "freeze server", ms: random.pick([500, 4_000, 8_000, 60_000]) })],
  [1, (random) => ({ do: "suspend", ms: random.pick([10_000, 3_600_000]) })],
];

const version = (random: Random) => String(random.whole(0, anything));

function loss(random: Random): Step {
  const ms = random.pick([3_000, 25_000, 90_000]);
  return random.chance(0.25) ? { do: "hang driver", ms } : { do: "lose gpu", pick: random.whole(0, anything), ms };
}

const total = kinds.reduce((sum, [weight]) => sum + weight, 0);

function draw(random: Random, mood: Mood): Step {
  let left = random.next() * total;
  for (const [weight, make] of kinds) {
    left -= weight;
    if (left < 0) return make(random, mood);
  }
  return { do: "next timer" };
}

/** About as long as it takes until an idle worker is frozen. */
const rest = (random: Random): Step => ({ do: "pass", ms: random.pick([1_000, 2_000, 4_000, 9_000]) });

/** A step that the history's mood adds. */
function special(random: Random, { isSleepy, isTight, isCpus }: Mood): Step | undefined {
  if (isSleepy && random.chance(0.3)) return rest(random);
  return isTight && !isCpus && random.chance(0.08) ? loss(random) : undefined;
}

/** Draws a history from its seed. */
export function drawScript(seed: number): Script {
  const random = seeded(seed);
  const mood = { isSleepy: random.chance(0.4), isTight: random.chance(0.5), isCpus: random.chance(0.4) };
  const endpoints = [settings(random, mood), settings(random, mood)].slice(0, random.whole(mood.isTight ? 2 : 1, 2));
  const steps = Array.from({ length: random.whole(12, 55) }, () => {
    const step = special(random, mood) ?? draw(random, mood);
    return random.chance(0.2) ? { ...step, together: true } : step;
  });
  const delays = random.chance(0.5);
  return { seed, endpoints, delays, ...(mood.isTight ? { machine: machine(random) } : {}), steps };
}
