import { describe, expect, it } from "vitest";
import { compareCuda, cudaOf, neededCuda, supportsCuda } from "./cuda.js";

describe("A driver", () => {
  it.each([
    ["570.133.20", "12.8"],
    ["550.54.15", "12.4"],
    ["535.309.01", "12.2"],
    ["580", "13.0"],
    ["999.1", "13.1"],
    ["418.67", undefined],
    ["", undefined],
  ])("%s supports CUDA up to %s", (driver, version) => {
    expect(cudaOf(driver)).toBe(version);
  });

  it("supports older versions, and is trusted if it is not known", () => {
    const supported = (driver: string) => ["11.8", "12.4", "12.8", "13.0"].filter((each) => supportsCuda(driver, each));
    expect(supported("550.54.15")).toEqual(["11.8", "12.4"]);
    expect(supported("580.1")).toEqual(["11.8", "12.4", "12.8", "13.0"]);
    expect(supported("")).toEqual(["11.8", "12.4", "12.8", "13.0"]);
    expect(supportsCuda("535", undefined)).toBe(true);
  });
});

it("CUDA versions are compared by their numbers", () => {
  expect(["12.10", "12.9", "13", "11.8", "12"].sort(compareCuda)).toEqual(["11.8", "12", "12.9", "12.10", "13"]);
});

it.each([
  [{}, undefined],
  [{ allowedCudaVersions: [] }, undefined],
  [{ allowedCudaVersions: ["12.9", "12.4", "13.0"] }, "12.4"],
  [{ minCudaVersion: "12.6" }, "12.6"],
  [{ allowedCudaVersions: ["12.4"], minCudaVersion: "12.6" }, "12.6"],
  [{ allowedCudaVersions: ["12.8"], minCudaVersion: "11.8" }, "12.8"],
])("With %j a worker needs a driver with CUDA %s", (settings, version) => {
  expect(neededCuda(settings)).toBe(version);
});
