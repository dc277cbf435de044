/** One GPU of a host. */
export interface Gpu {
  /** Its UUID, as the driver reports it. */
  readonly id: string;
  readonly index: number;
  /** Its type's name, such as NVIDIA L4. */
  readonly name: string;
  /** 0 if it has no memory of its own but shares the machine's. */
  readonly memoryMib: number;
  readonly driver: string;
}

/** The id of a GPU that a worker's host has not told: a cluster picks GPUs itself. */
export const untoldGpu = "";

/** The seven tiers of the contract, each with its GPU types, in order. */
export const gpuTiers = {
  AMPERE_16: [
    "NVIDIA RTX A4000",
    "NVIDIA RTX A4500",
    "NVIDIA RTX 4000 Ada Generation",
    "NVIDIA RTX 2000 Ada Generation",
  ],
  AMPERE_24: ["NVIDIA RTX A5000", "NVIDIA L4", "NVIDIA GeForce RTX 3090"],
  ADA_24: ["NVIDIA GeForce RTX 4090"],
  AMPERE_48: ["NVIDIA RTX A6000", "NVIDIA A40"],
  ADA_48_PRO: ["NVIDIA L40", "NVIDIA L40S", "NVIDIA RTX 6000 Ada Generation"],
  AMPERE_80: ["NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB"],
  ADA_80_PRO: ["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL"],
} as const;
export type GpuTier = keyof typeof gpuTiers;

/** GPU types of the public interface that belong to no tier, in its order. */
const untiered = [
  "NVIDIA GeForce RTX 5090",
  "NVIDIA GeForce RTX 5080",
  "NVIDIA GeForce RTX 4080 SUPER",
  "NVIDIA GeForce RTX 4080",
  "NVIDIA GeForce RTX 4070 Ti",
  "NVIDIA GeForce RTX 3090 Ti",
  "NVIDIA GeForce RTX 3080 Ti",
  "NVIDIA GeForce RTX 3080TI",
  "NVIDIA GeForce RTX 3080",
  "NVIDIA GeForce RTX 3070",
  "NVIDIA RTX 5000 Ada Generation",
  "NVIDIA RTX 4000 SFF Ada Generation",
  "NVIDIA RTX A2000",
  "NVIDIA RTX A30",
  "NVIDIA A30",
  "NVIDIA A5000 Ada",
  "NVIDIA  RTX A4500",
  "NVIDIA  A30",
  "NVIDIA H200",
  "NVIDIA H200 NVL",
  "NVIDIA B200",
  "NVIDIA RTX PRO 6000 Blackwell Server Edition",
  "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
  "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
  "AMD Instinct MI300X OAM",
  "Tesla T4",
  "Tesla V100-PCIE-16GB",
  "Tesla V100-PCIE-32GB",
  "Tesla V100-SXM2-16GB",
  "Tesla V100-SXM2-32GB",
  "Tesla V100-FHHL-16GB",
];

/** Nominal memory in GB, by GPU type. */
const memoryInGb: Readonly<Record<string, number>> = {
  "NVIDIA RTX A4000": 16,
  "NVIDIA RTX A4500": 20,
  "NVIDIA RTX 4000 Ada Generation": 20,
  "NVIDIA RTX 2000 Ada Generation": 16,
  "NVIDIA RTX A5000": 24,
  "NVIDIA L4": 24,
  "NVIDIA GeForce RTX 3090": 24,
  "NVIDIA GeForce RTX 4090": 24,
  "NVIDIA RTX A6000": 48,
  "NVIDIA A40": 48,
  "NVIDIA L40": 48,
  "NVIDIA L40S": 48,
  "NVIDIA RTX 6000 Ada Generation": 48,
  "NVIDIA A100 80GB PCIe": 80,
  "NVIDIA A100-SXM4-80GB": 80,
  "NVIDIA H100 80GB HBM3": 80,
  "NVIDIA H100 PCIe": 80,
  "NVIDIA H100 NVL": 94,
  "NVIDIA GeForce RTX 5090": 32,
  "NVIDIA GeForce RTX 5080": 16,
  "NVIDIA GeForce RTX 4080 SUPER": 16,
  "NVIDIA GeForce RTX 4080": 16,
  "NVIDIA GeForce RTX 4070 Ti": 12,
  "NVIDIA GeForce RTX 3090 Ti": 24,
  "NVIDIA GeForce RTX 3080 Ti": 12,
  "NVIDIA GeForce RTX 3080TI": 12,
  "NVIDIA GeForce RTX 3080": 10,
  "NVIDIA GeForce RTX 3070": 8,
  "NVIDIA RTX 5000 Ada Generation": 32,
  "NVIDIA RTX 4000 SFF Ada Generation": 20,
  "NVIDIA RTX A2000": 6,
  "NVIDIA RTX A30": 24,
  "NVIDIA A30": 24,
  "NVIDIA A5000 Ada": 32,
  "NVIDIA  RTX A4500": 20,
  "NVIDIA  A30": 24,
  "NVIDIA H200": 141,
  "NVIDIA H200 NVL": 141,
  "NVIDIA B200": 180,
  "NVIDIA RTX PRO 6000 Blackwell Server Edition": 96,
  "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": 96,
  "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": 96,
  "AMD Instinct MI300X OAM": 192,
  "Tesla T4": 16,
  "Tesla V100-PCIE-16GB": 16,
  "Tesla V100-PCIE-32GB": 32,
  "Tesla V100-SXM2-16GB": 16,
  "Tesla V100-SXM2-32GB": 32,
  "Tesla V100-FHHL-16GB": 16,
};

const tierOf = new Map<string, GpuTier>(
  (Object.entries(gpuTiers) as [GpuTier, readonly string[]][]).flatMap(([tier, names]) =>
    names.map((name) => [name, tier] as const),
  ),
);

/** The first type of the public interface that this is true of. */
export const knownGpuType = (isIt: (name: string) => boolean): string | undefined =>
  [...tierOf.keys(), ...untiered].find(isIt);

/** A GPU type's tier; undefined if it has none. */
export const tierOfType = (name: string): GpuTier | undefined => tierOf.get(name);
export const isTier = (name: string): name is GpuTier => Object.hasOwn(gpuTiers, name);
export const isGpuType = (name: string, present: readonly string[]): boolean =>
  tierOf.has(name) || untiered.includes(name) || present.some((each) => isSameType(each, name));

/**
 * The types that a comma-separated list of tiers and types stands for, in order; `-NVIDIA L4` takes a type out again.
 * `unknown` names the first entry that is neither.
 */
export function typesOfTiers(
  gpuIds: string,
  present: readonly string[] = [],
): { types: string[] } | { unknown: string } {
  const types: string[] = [];
  const excluded: string[] = [];
  for (const entry of gpuIds.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const name = entry.startsWith("-") ? entry.slice(1).trim() : entry;
    const named = isTier(name) ? gpuTiers[name] : isGpuType(name, present) ? [name] : undefined;
    if (!named) return { unknown: name };
    (name === entry ? types : excluded).push(...named);
  }
  return { types: [...new Set(types)].filter((type) => !excluded.some((each) => isSameType(each, type))) };
}

/** The tiers of these types, each once, in order; `""` where a type has none. */
export function tiersOfTypes(gpuTypeIds: readonly string[]): string {
  const tiers = gpuTypeIds.map((name) => tierOf.get(name));
  return tiers.includes(undefined) ? "" : [...new Set(tiers)].join(",");
}

/** Whether two names mean the same type: some in the public list, and some from drivers, differ in blanks and case. */
export const isSameType = (one: string, other: string): boolean =>
  oneBlank(one).toLowerCase() === oneBlank(other).toLowerCase();
const oneBlank = (name: string) => name.replace(/\s+/g, " ").trim();

/** A GPU type as callers see it: the known facts, and how many of its GPUs one worker can have. */
export interface GpuTypeView {
  readonly id: string;
  readonly displayName: string;
  readonly manufacturer: string;
  readonly memoryInGb: number;
  readonly maxGpuCount: number;
}

/** What a host has: GPUs, or as a cluster so many of each type. */
interface GpuStock {
  readonly gpus: readonly Gpu[];
  readonly cluster?: {
    readonly gpuTypes?: readonly (Pick<Gpu, "name" | "memoryMib"> & { readonly atOneNode: number })[];
  };
}

/** A type as people call it: NVIDIA GeForce RTX 4090 is the RTX 4090. */
export const displayNameOf = (type: string): string => oneBlank(type.replace(/^NVIDIA\s+(GeForce )?/, ""));

/** Every type that an endpoint may ask for: the types of the public interface, then types found only on these hosts. */
export function showGpuTypes(hosts: readonly GpuStock[]): GpuTypeView[] {
  const known = [...tierOf.keys(), ...untiered];
  const present = hosts.flatMap(({ gpus, cluster }) => [...gpus, ...(cluster?.gpuTypes ?? [])]);
  const others = present.map(({ name }) => name).filter((name) => !known.some((each) => isSameType(each, name)));
  return [...known, ...new Set(others)].map((id) => {
    const isIt = ({ name }: Pick<Gpu, "name">) => isSameType(name, id);
    return {
      id,
      displayName: displayNameOf(id),
      manufacturer: id.startsWith("AMD") ? "AMD" : "Nvidia",
      memoryInGb: memoryInGb[id] ?? Math.round((present.find(isIt)?.memoryMib ?? 0) / 1_024),
      // a worker's GPUs are all on one host
      maxGpuCount: Math.max(
        0,
        ...hosts.flatMap(({ gpus, cluster }) => [
          gpus.filter(isIt).length,
          ...(cluster?.gpuTypes ?? []).filter(isIt).map(({ atOneNode }) => atOneNode),
        ]),
      ),
    };
  });
}
