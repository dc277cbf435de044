/** The CPU flavours of the public interface: GB of memory for each virtual processor. */
export const cpuFlavors = [
  { id: "cpu3c", group: "Compute-Optimized", gbPerCpu: 2 },
  { id: "cpu3g", group: "General Purpose", gbPerCpu: 4 },
  { id: "cpu3m", group: "Memory-Optimized", gbPerCpu: 8 },
  { id: "cpu5c", group: "Compute-Optimized", gbPerCpu: 2 },
  { id: "cpu5g", group: "General Purpose", gbPerCpu: 4 },
  { id: "cpu5m", group: "Memory-Optimized", gbPerCpu: 8 },
] as const;

/** GB of memory for each virtual processor of a flavour, also of one that is not listed, by its last letter. */
export const gbPerCpu = (flavorId: string): number | undefined =>
  cpuFlavors.find(({ id }) => id.at(-1) === flavorId.at(-1))?.gbPerCpu;

/** A flavour with a number of processors and GB of memory. */
export interface Instance {
  readonly flavor: string;
  readonly cpus: number;
  readonly memoryGb: number;
}

/** Reads an instance such as cpu3g-2-8, which has 2 processors and 8 GB; undefined: this is none. */
export function readInstance(id: string): Instance | undefined {
  const [, flavor, cpus, memoryGb] = /^(cpu\d+[cgm])-([1-9]\d{0,3})-([1-9]\d{0,4})$/.exec(id) ?? [];
  return flavor === undefined ? undefined : { flavor, cpus: Number(cpus), memoryGb: Number(memoryGb) };
}
