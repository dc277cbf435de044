import { describe, expect, it } from "vitest";
import { newWorker } from "../../testing/facts-fixture.js";
import { coldStart, percentiles } from "./cold-start.js";

describe("A cold start", () => {
  it("is measured step by step", () => {
    const times = {
      createdAt: 1_000,
      imageAt: 1_900,
      madeAt: 1_950,
      startedAt: 2_000,
      readyAt: 4_000,
      outputAt: 4_500,
    };
    expect(coldStart({ ...newWorker, ...times })).toEqual({
      steps: { image: 900, create: 50, start: 50, ready: 2_000 },
      totalMs: 3_000,
      outputMs: 500,
    });
  });

  it("includes the wait for a place, and leaves out the steps that a process does not have", () => {
    const times = { createdAt: 0, throttledAt: 0, placedAt: 700, startedAt: 710, readyAt: 800 };
    expect(coldStart({ ...newWorker, ...times }).steps).toEqual({ place: 700, start: 10, ready: 90 });
  });

  it("has no total before it is over", () => {
    expect(coldStart({ ...newWorker, createdAt: 5, startedAt: 9 })).toEqual({
      steps: { start: 4 },
      totalMs: undefined,
      outputMs: undefined,
    });
  });
});

describe("Percentiles", () => {
  it.each([
    [[7], { p50: 7, p90: 7, p99: 7 }],
    [[3, 1, 2, 4], { p50: 2, p90: 4, p99: 4 }],
    [Array.from({ length: 100 }, (_, n) => 100 - n), { p50: 50, p90: 90, p99: 99 }],
  ])("of %j are of the nearest rank", (values, expected) => {
    expect(percentiles(values)).toEqual(expected);
  });

  it("of no values are undefined", () => {
    expect(percentiles([])).toBeUndefined();
  });
});
