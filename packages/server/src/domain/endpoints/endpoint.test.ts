import { describe, expect, it } from "vitest";
import { type EndpointSettings, endpointDefaults, needsRelease } from "./endpoint.js";

describe("A save of an endpoint", () => {
  const before: EndpointSettings = { ...endpointDefaults, name: "e", templateId: "template000001" };
  it.each<[Partial<EndpointSettings>, boolean]>([
    [{}, false],
    [{ name: "other" }, false],
    [{ idleTimeout: 60 }, false],
    [{ scalerType: "REQUEST_COUNT", scalerValue: 9 }, false],
    [{ workersMin: 1, workersMax: 9 }, false],
    [{ executionTimeoutMs: 5_000 }, false],
    [{ flashBootType: "FLASHBOOT" }, false],
    [{ locations: "CZ" }, false],
    [{ templateId: "template000002" }, true],
    [{ env: { A: "1" } }, true],
    [{ computeType: "CPU" }, true],
    [{ gpuTypeIds: ["NVIDIA L4"] }, true],
    [{ gpuCount: 2 }, true],
    [{ networkVolumeIds: ["volume00000001"] }, true],
    [{ minCudaVersion: "12.4" }, true],
  ])("of %j replaces the workers: %s", (change, replaces) => {
    expect(needsRelease(before, { ...before, ...change })).toBe(replaces);
  });
});
