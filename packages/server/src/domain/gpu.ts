/** The seven tiers of the contract, each with the GPU types that belong to it, in order. */
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

/** GPU types of the public interface that belong to no tier. */
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

const tierOf = new Map<string, GpuTier>(
  (Object.entries(gpuTiers) as [GpuTier, readonly string[]][]).flatMap(([tier, names]) =>
    names.map((name) => [name, tier] as const),
  ),
);

export const isTier = (name: string): name is GpuTier => Object.hasOwn(gpuTiers, name);
export const isGpuType = (name: string, present: readonly string[]): boolean =>
  tierOf.has(name) || untiered.includes(name) || present.includes(name);

/** The types that a comma-separated list of tiers stands for, in order; `undefined` names the first unknown tier. */
export function typesOfTiers(gpuIds: string): { types: string[] } | { unknown: string } {
  const types: string[] = [];
  for (const tier of gpuIds.split(",").map((part) => part.trim())) {
    if (tier === "") continue;
    if (!isTier(tier)) return { unknown: tier };
    types.push(...gpuTiers[tier]);
  }
  return { types };
}

/** The tiers of these types, each once, in order; `""` where a type has none. */
export function tiersOfTypes(gpuTypeIds: readonly string[]): string {
  const tiers = gpuTypeIds.map((name) => tierOf.get(name));
  return tiers.includes(undefined) ? "" : [...new Set(tiers)].join(",");
}
