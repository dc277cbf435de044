import { describe, expect, it } from "vitest";
import { gpuTiers, isGpuType, isTier, tiersOfTypes, typesOfTiers } from "./gpu.js";

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
      it: "stand for their types in order",
      gpuIds: "ADA_24,AMPERE_24",
      types: [...gpuTiers.ADA_24, ...gpuTiers.AMPERE_24],
    },
    { it: "may have blanks between them", gpuIds: " ADA_24 , ADA_24", types: [...gpuTiers.ADA_24, ...gpuTiers.ADA_24] },
    { it: "may be none", gpuIds: "", types: [] },
  ])("$it", ({ gpuIds, types }) => {
    expect(typesOfTiers(gpuIds)).toEqual({ types });
  });

  it("that do not exist are named", () => {
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

  it("are shown as none where one type has none", () => {
    expect([tiersOfTypes(["NVIDIA L4", "NVIDIA H200"]), tiersOfTypes([])]).toEqual(["", ""]);
  });
});

describe("A GPU type", () => {
  it.each([
    ["NVIDIA L4", true],
    ["NVIDIA H200", true],
    ["Some GPU that is built in here", true],
    ["NVIDIA L5", false],
    ["ADA_24", false],
    ["", false],
  ])("'%s' is known: %s", (name, known) => {
    expect(isGpuType(name, ["Some GPU that is built in here"])).toBe(known);
  });
});
