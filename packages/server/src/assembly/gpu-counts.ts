import type { Needs } from "../operations/needs.js";

/** How many of this server's GPUs a worker holds, and how many are free. */
export function gpuCounts({ registry, here }: Needs<"registry" | "here">): { held: number; free: number } {
  const inUse = new Set(registry.liveWorkers().flatMap(({ row }) => row.resources?.gpus.map(({ id }) => id) ?? []));
  const gpus = here.hosts().flatMap(({ facts }) => facts.gpus);
  const held = gpus.filter(({ id }) => inUse.has(id)).length;
  return { held, free: gpus.length - held };
}
