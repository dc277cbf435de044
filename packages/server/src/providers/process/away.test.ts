import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { Away } from "./away.js";

/** Checks as often as the keeper does, until this time. */
function looked(away: Away, from: number, to: number): number {
  for (let now = from; now < to; now += 250) away.look(now);
  return away.look(to);
}

describe("The time without a server", () => {
  it("counts from the start of the keeper, and again from each server's departure", () => {
    const away = new Away(1_000);
    expect(looked(away, 1_000, 61_000)).toBe(60_000);
    away.begin(61_000);
    expect(looked(away, 61_000, 62_000)).toBe(1_000);
  });

  it("does not include time for which the keeper was suspended", () => {
    const away = new Away(0);
    looked(away, 0, 10_000);
    expect(away.look(3_610_000)).toBe(10_000);
    expect(looked(away, 3_610_000, 3_615_000)).toBe(15_000);
  });

  it("includes time for which a busy machine delayed the keeper", () => {
    const away = new Away(0);
    looked(away, 0, 10_000);
    expect(away.look(10_000 + limits.clockGapMs)).toBe(10_000 + limits.clockGapMs);
  });
});
