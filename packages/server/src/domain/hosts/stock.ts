import { limits } from "../../limits/index.js";
import type { Gpu } from "../hosts/gpu.js";
import type { HostFacts, Stock } from "../hosts/host.js";

/** What is known of a host after some looks at it. */
export interface Known {
  readonly facts: HostFacts;
  /** Whether it is a machine with GPUs: that stays, also when all of them fall off. */
  readonly hasGpus: boolean;
  /** How many looks in a row could not tell. */
  readonly doubts: number;
  /** Those that were here once and are not now. */
  readonly away: readonly Gpu[];
}

/** What its operator says of a host. */
export interface HostSettings {
  readonly location: string | undefined;
  /** Undefined: where there are GPUs. */
  readonly enforceGpus: boolean | undefined;
}

/** What a look has changed. */
export interface StockChange {
  readonly known: Known;
  readonly found: readonly Gpu[];
  readonly back: readonly Gpu[];
  readonly lost: readonly { readonly gpu: Gpu; readonly why: string }[];
}

/** Takes in what a look has found. One that cannot tell changes nothing until so many in a row could not. */
export function takeIn(before: Known | undefined, stock: Stock, settings: HostSettings): StockChange {
  const had = before?.facts.gpus ?? [];
  const doubts = stock.gpus === undefined ? (before?.doubts ?? 0) + 1 : 0;
  const gpus = stock.gpus ?? (doubts < limits.stockDoubtsMax ? had : []);
  const here = new Set(gpus.map(({ id }) => id));
  const known = new Set([...had, ...(before?.away ?? [])].map(({ id }) => id));
  const gone = had.filter(({ id }) => !here.has(id));
  const hasGpus = stock.hasGpus || before?.hasGpus === true;
  const wasHere = new Set(had.map(({ id }) => id));
  return {
    known: {
      facts: {
        location: settings.location,
        gpus,
        gpusEnforced: settings.enforceGpus ?? hasGpus,
        cpus: stock.cpus,
        memoryMib: stock.memoryMib,
        ...(stock.cannotRun === undefined ? {} : { cannotRun: stock.cannotRun }),
        ...(stock.gpus === undefined || stock.isBlind ? { gpusUnseen: true } : {}),
        ...(stock.problems.length === 0 ? {} : { gpuProblem: stock.problems.join(" ") }),
      },
      hasGpus,
      doubts,
      away: [...(before?.away ?? []).filter(({ id }) => !here.has(id)), ...gone],
    },
    found: gpus.filter(({ id }) => !known.has(id)),
    back: gpus.filter(({ id }) => known.has(id) && !wasHere.has(id)),
    lost: gone.map((gpu) => ({ gpu, why: whyGone(gpu, stock.problems) })),
  };
}

function whyGone({ id }: Gpu, problems: readonly string[]): string {
  return problems.find((problem) => problem.includes(id)) ?? problems[0] ?? "nvidia-smi does not list it any more.";
}
