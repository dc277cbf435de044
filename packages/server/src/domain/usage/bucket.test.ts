import { describe, expect, it, test } from "vitest";
import { type BucketSize, bucketsOf, wallClock } from "./bucket.js";

const at = (text: string) => Date.parse(text);
const shown = (from: string, to: string, size: BucketSize, timeZone = "UTC") =>
  [...bucketsOf({ from: at(from), to: at(to), size, timeZone })].map(({ from, to }) =>
    [from, to].map((each) => new Date(each).toISOString().slice(0, 16)),
  );

describe("Buckets of a bill", () => {
  test.each([
    { size: "hour", first: "2026-05-06T10:00", last: "2026-05-06T13:00", count: 3 },
    { size: "day", first: "2026-05-06T00:00", last: "2026-05-07T00:00", count: 1 },
    { size: "week", first: "2026-05-04T00:00", last: "2026-05-11T00:00", count: 1 },
    { size: "month", first: "2026-05-01T00:00", last: "2026-06-01T00:00", count: 1 },
    { size: "year", first: "2026-01-01T00:00", last: "2027-01-01T00:00", count: 1 },
  ] as const)("of a $size are whole and begin with it", ({ size, first, last, count }) => {
    const found = shown("2026-05-06T10:20:00Z", "2026-05-06T12:40:00Z", size);
    expect([found?.length, found?.[0]?.[0], found?.at(-1)?.[1]]).toEqual([count, first, last]);
  });

  it("of a day have 23 and 25 hours when the clocks of their zone change", () => {
    const spring = shown("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", "day", "Europe/Berlin");
    expect(spring).toEqual([
      ["2026-03-27T23:00", "2026-03-28T23:00"],
      ["2026-03-28T23:00", "2026-03-29T22:00"],
      ["2026-03-29T22:00", "2026-03-30T22:00"],
    ]);
    const autumn = shown("2026-10-25T12:00:00Z", "2026-10-25T13:00:00Z", "day", "Europe/Berlin");
    expect(autumn).toEqual([["2026-10-24T22:00", "2026-10-25T23:00"]]);
  });

  it("begin where the zone's day begins, at half hours and beyond the date line too", () => {
    expect(shown("2026-01-10T12:00:00Z", "2026-01-10T13:00:00Z", "day", "Asia/Kolkata")).toEqual([
      ["2026-01-09T18:30", "2026-01-10T18:30"],
    ]);
    expect(shown("2026-01-10T12:00:00Z", "2026-01-10T13:00:00Z", "month", "Pacific/Kiritimati")).toEqual([
      ["2025-12-31T10:00", "2026-01-31T10:00"],
    ]);
    // the clocks of Havana go forward at midnight
    expect(shown("2026-03-08T12:00:00Z", "2026-03-08T13:00:00Z", "day", "America/Havana")?.[0]?.[0]).toBe(
      "2026-03-08T05:00",
    );
  });

  it.each([
    "Europe/Berlin",
    "America/Havana",
    "America/St_Johns",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Pacific/Apia",
  ])("of %s follow each other, and none could begin earlier", (timeZone) => {
    const quarter = 900_000;
    const clock = wallClock(timeZone);
    const shows = (time: number) => Date.UTC(...clock(time));
    for (const size of ["day", "week", "month"] as const) {
      const found = [
        ...bucketsOf({ from: at("2010-06-01T00:00:00Z"), to: at("2013-06-01T00:00:00Z"), size, timeZone }),
      ];
      expect(found.length).toBeGreaterThan(35);
      for (const [n, { from, to }] of found.entries()) {
        expect(to).toBe(found[n + 1]?.from ?? to);
        const [year, month, day] = clock(from);
        const wanted = Date.UTC(year, month, day);
        for (let before = from - quarter; before > from - 3_600_000 * 4; before -= quarter)
          expect(shows(before)).toBeLessThan(wanted);
      }
    }
  });

  it("are computed one by one, and know their zones", () => {
    const year = { from: at("2026-01-01T00:00:00Z"), to: at("2027-01-01T00:00:00Z"), size: "hour" as const };
    expect([...bucketsOf({ ...year, timeZone: "UTC" })]).toHaveLength(8_760);
    const endless = bucketsOf({ ...year, to: Number.MAX_SAFE_INTEGER, timeZone: "Asia/Kolkata" });
    expect(endless.next().value).toEqual({ from: year.from, to: year.from + 3_600_000 });
    expect(() => [...bucketsOf({ ...year, timeZone: "Moon/Tycho" })]).toThrow(RangeError);
  });
});
