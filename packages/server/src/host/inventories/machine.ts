import type { Gpu } from "../../domain/hosts/gpu.js";
import type { Inventory } from "../inventory.js";
import { type GpuStock, NvidiaSmi } from "./nvidia-smi.js";
import { memoryMib, processors } from "./processors.js";

/** The inventory of this machine. `chosen`: the indexes and ids of GPUs that may be given out. */
export function machineInventory(
  chosen: "all" | readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Inventory {
  const smi = new NvidiaSmi(env);
  const isAsked = chosen === "all" || chosen.length > 0;
  const notAsked: GpuStock = { gpus: [], hasGpus: false, problems: ["GPUs are turned off here (MILLRACE_GPUS)."] };
  return {
    async read() {
      const seen = isAsked ? await smi.look() : notAsked;
      return { ...(chosen === "all" ? seen : restricted(seen, chosen)), cpus: processors(), memoryMib: memoryMib() };
    },
  };
}

const isNamed = ({ id, index }: Gpu, name: string) => name === String(index) || name.toLowerCase() === id.toLowerCase();

/** Keeps only the named GPUs, and drops problems of the others. */
function restricted(seen: GpuStock, chosen: readonly string[]): GpuStock {
  const { gpus } = seen;
  if (gpus === undefined || gpus.length === 0) return seen;
  const others = gpus.filter((gpu) => !chosen.some((name) => isNamed(gpu, name)));
  const missing = chosen.filter((name) => !gpus.some((gpu) => isNamed(gpu, name)));
  return {
    ...seen,
    gpus: gpus.filter((gpu) => !others.includes(gpu)),
    problems: [
      ...seen.problems.filter((problem) => !others.some(({ id }) => problem.includes(id))),
      ...missing.map((name) => `MILLRACE_GPUS names '${name}', which is not among the GPUs that work here.`),
    ],
  };
}
