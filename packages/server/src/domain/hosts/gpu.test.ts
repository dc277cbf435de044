import { describe, expect, it } from "vitest";
import { gpuTiers, isGpuType, isSameType, isTier, showGpuTypes, tiersOfTypes, typesOfTiers } from "./gpu.js";

describe("GPU tiers", () => {
  it("are the seven of the contract, and no type belongs to two", () => {
    expect(Object.keys(gpuTiers)).toEqual([
      "AMPERE_16",
      "AMPERE_24",
      "ADA_24",
      "AMPERE_48",
      "ADA_48_PRO",
      "AMPERE_80",
      "ADA_80_PRO",
    ]);
    const types = Object.values(gpuTiers).flat();
    expect(new Set(types).size).toBe(types.length);
  });

  it.each([
    {
      it: "expand to their types in order",
      gpuIds: "ADA_24,AMPERE_24",
      types: [...gpuTiers.ADA_24, ...gpuTiers.AMPERE_24],
    },
    { it: "may have blanks between them, and count once", gpuIds: " ADA_24 , ADA_24", types: [...gpuTiers.ADA_24] },
    { it: "may stand beside types", gpuIds: "NVIDIA L40S,ADA_24", types: ["NVIDIA L40S", ...gpuTiers.ADA_24] },
    {
      it: "may have types taken out of them, wherever these stand",
      gpuIds: "-NVIDIA L4,AMPERE_24,-NVIDIA GeForce RTX 3090",
      types: ["NVIDIA RTX A5000"],
    },
    { it: "may be none", gpuIds: "", types: [] },
  ])("$it", ({ gpuIds, types }) => {
    expect(typesOfTiers(gpuIds)).toEqual({ types });
  });

  it("that do not exist are named in the refusal", () => {
    expect(typesOfTiers("ADA_24,ADA_96,NONE")).toEqual({ unknown: "ADA_96" });
    expect(typesOfTiers("constructor")).toEqual({ unknown: "constructor" });
    expect([isTier("toString"), isTier("ADA_24")]).toEqual([false, true]);
  });

  it.each(Object.keys(gpuTiers))("come back from their types: %s", (tier) => {
    const found = typesOfTiers(tier);
    expect("types" in found && tiersOfTypes(found.types)).toBe(tier);
  });

  it("keep the order of preference, each once", () => {
    expect(tiersOfTypes(["NVIDIA L4", "NVIDIA A40", "NVIDIA RTX A5000"])).toBe("AMPERE_24,AMPERE_48");
  });

  it("are shown as none if one of the types has none", () => {
    expect([tiersOfTypes(["NVIDIA L4", "NVIDIA H200"]), tiersOfTypes([])]).toEqual(["", ""]);
  });
});

describe("A GPU type", () => {
  it.each([
    ["NVIDIA L4", true],
    ["NVIDIA H200", true],
    ["Some GPU in this host", true],
    ["NVIDIA L5", false],
    ["ADA_24", false],
    ["", false],
  ])("'%s' is known: %s", (name, known) => {
    expect(isGpuType(name, ["Some GPU in this host"])).toBe(known);
  });
});

describe("The list of GPU types", () => {
  const gpu = (index: number, name: string, memoryMib: number) => ({
    id: `GPU-${index}`,
    index,
    name,
    memoryMib,
    driver: "",
  });
  const present = [
    gpu(0, "NVIDIA L4", 23_034),
    gpu(1, "NVIDIA L4", 23_034),
    gpu(2, "NVIDIA RTX A4500", 20_470),
    gpu(3, "NVIDIA GB10", 0),
    gpu(4, "NVIDIA GeForce RTX 2060", 6_144),
  ];
  const shown = showGpuTypes([{ gpus: present }, { gpus: [gpu(5, "NVIDIA L4", 23_034)] }]);
  const one = (id: string) => shown.find((type) => type.id === id);

  it("have a memory size each, and unique names", () => {
    const known = showGpuTypes([]);
    expect(known.filter(({ memoryInGb }) => memoryInGb <= 0)).toEqual([]);
    expect(new Set(known.map(({ id }) => id)).size).toBe(known.length);
    expect(known.every(({ id }) => isGpuType(id, []))).toBe(true);
  });

  it("show how many of them one worker can have, whatever the spaces in their names", () => {
    expect(one("NVIDIA L4")).toEqual({
      id: "NVIDIA L4",
      displayName: "L4",
      manufacturer: "Nvidia",
      memoryInGb: 24,
      maxGpuCount: 2,
    });
    expect([one("NVIDIA RTX A4500"), one("NVIDIA  RTX A4500")]).toMatchObject([{ maxGpuCount: 1 }, { maxGpuCount: 1 }]);
    expect(one("NVIDIA A40")).toMatchObject({ maxGpuCount: 0, memoryInGb: 48 });
  });

  it("include types that only this host has, with the memory it reports", () => {
    expect(shown.slice(-2)).toMatchObject([
      { id: "NVIDIA GB10", displayName: "GB10", memoryInGb: 0, maxGpuCount: 1 },
      { id: "NVIDIA GeForce RTX 2060", displayName: "RTX 2060", memoryInGb: 6, maxGpuCount: 1 },
    ]);
  });

  it.each([
    ["NVIDIA  RTX A4500", "NVIDIA RTX A4500", true],
    [" NVIDIA L4", "NVIDIA L4 ", true],
    ["NVIDIA L4", "NVIDIA L40", false],
  ])("'%s' and '%s' are the same: %s", (a, b, same) => {
    expect(isSameType(a, b)).toBe(same);
  });
});
