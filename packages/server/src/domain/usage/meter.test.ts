import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { newWorker } from "../../testing/facts-fixture.js";
import { beginningOf, billableMs, cover, hourMs, spread } from "./meter.js";

const at = (text: string) => Date.parse(text);

describe("The billable time of a worker", () => {
  test.each([
    { it: "is none before its start", row: {}, now: 10_000, ms: 0 },
    { it: "grows from its start", row: { startedAt: 1_000 }, now: 10_000, ms: 9_000 },
    { it: "ends with it", row: { startedAt: 1_000, endedAt: 5_000 }, now: 10_000, ms: 4_000 },
    { it: "stands still while it is paused", row: { startedAt: 1_000, pausedAt: 4_000 }, now: 10_000, ms: 3_000 },
    {
      it: "leaves out earlier pauses",
      row: { startedAt: 1_000, pausedAt: 4_000, resumedAt: 6_000, pausedMs: 2_000 },
      now: 10_000,
      ms: 7_000,
    },
    {
      it: "ends with the pause in which it ended",
      row: { startedAt: 1_000, pausedAt: 4_000, endedAt: 9_000 },
      now: 10_000,
      ms: 3_000,
    },
  ])("$it", ({ row, now, ms }) => expect(billableMs({ ...newWorker, ...row }, now)).toBe(ms));
});

describe("An amount", () => {
  it("is spread over the hours it is for", () => {
    expect(spread(90, at("2026-01-01T01:30:00Z"), at("2026-01-01T03:00:00Z"))).toEqual([
      { at: at("2026-01-01T01:00:00Z"), amount: 30 },
      { at: at("2026-01-01T02:00:00Z"), amount: 60 },
    ]);
  });

  it("is spread without loss, whatever it is", () => {
    const time = fc.integer({ min: 0, max: 100 * hourMs });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e12 }), time, time, (amount, one, other) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other) + 1];
        const shares = spread(amount, from, to);
        expect(shares.reduce((sum, share) => sum + share.amount, 0)).toBe(amount);
        expect(shares.every((share) => share.amount > 0 && share.at < to && share.at + hourMs > from)).toBe(true);
      }),
    );
  });
});

describe("A time", () => {
  it("that is a year in UTC is covered by twelve months", () => {
    const year = [at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")] as const;
    expect(cover(...year)).toEqual([{ span: "month", from: year[0], to: year[1] }]);
  });

  it("that is a month in a time zone is a month with some hours more and less", () => {
    const [begin, end] = [at("2026-04-30T22:00:00Z"), at("2026-05-31T22:00:00Z")];
    const [may, june] = [at("2026-05-01T00:00:00Z"), at("2026-06-01T00:00:00Z")];
    expect(cover(begin, end)).toEqual([
      { span: "hour", from: begin, to: may },
      { span: "month", from: may, to: june },
      { span: "hour", from: end, to: june, isTaken: true },
    ]);
  });

  it("is covered once and whole, whatever it is", () => {
    const hour = fc.integer({ min: 0, max: 24 * 800 }).map((n) => at("2025-11-15T00:00:00Z") + n * hourMs);
    fc.assert(
      fc.property(hour, hour, (one, other) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other)];
        const stretches = cover(from, to);
        const times = new Map<number, number>();
        for (const { span, from, to, isTaken } of stretches) {
          expect([beginningOf(span, from), beginningOf(span, to)]).toEqual([from, to]);
          for (let each = from; each < to; each += hourMs) times.set(each, (times.get(each) ?? 0) + (isTaken ? -1 : 1));
        }
        const covered = [...times].filter(([, count]) => count !== 0);
        expect(covered.every(([each, count]) => count === 1 && each >= from && each < to)).toBe(true);
        expect(covered.length).toBe((to - from) / hourMs);
        expect(stretches.length).toBeLessThanOrEqual(9);
      }),
    );
  });
});
