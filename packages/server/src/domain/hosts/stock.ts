import { limits } from "../../limits/index.js";
import type { Gpu } from "../hosts/gpu.js";
import type { HostFacts, Stock } from "../hosts/host.js";

/** What is known of a host after some looks. */
export interface Known {
  readonly facts: HostFacts;
  /** Whether the machine has GPUs: stays true even if all of them disappear. */
  readonly hasGpus: boolean;
  /** How many looks in a row could not tell which GPUs there are. */
  readonly doubts: number;
  /** GPUs that were here once and are missing now. */
  readonly away: readonly Gpu[];
}

/** What the operator has set for a host. */
export interface HostSettings {
  readonly location: string | undefined;
  /** Undefined: enforced if there are GPUs. */
  readonly enforceGpus: boolean | undefined;
}

/** What a look has changed. */
export interface StockChange {
  readonly known: Known;
  readonly found: readonly Gpu[];
  readonly back: readonly Gpu[];
  readonly lost: readonly { readonly gpu: Gpu; readonly why: string }[];
}

/** Takes in the result of a look. A look that cannot tell changes nothing, unless there were too many in a row. */
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
  return problems.find((problem) => problem.includes(id)) ?? problems[0] ?? "nvidia-smi no longer lists it.";
}
