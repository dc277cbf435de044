import { hourMs } from "./meter.js";

export const bucketSizes = ["hour", "day", "week", "month", "year"] as const;
export type BucketSize = (typeof bucketSizes)[number];

/** A stretch of time that a bill has one record for, from its beginning to the beginning of the next one. */
export interface Bucket {
  readonly from: number;
  readonly to: number;
}

/** Year, month, day and hour of a time on a clock on the wall. */
type Wall = readonly [year: number, month: number, day: number, hour: number];

/** The clock on the wall of a time zone; throws a RangeError for an unknown zone. */
export function wallClock(timeZone: string): (at: number) => Wall {
  if (timeZone === "UTC") {
    return (at) => {
      const date = new Date(at);
      return [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(), date.getUTCHours()];
    };
  }
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
  });
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
    return [of("year"), of("month") - 1, of("day"), of("hour")];
  };
}

/** The hour on a zone's wall clock that begins a bucket: the hour 0 of a day, a Monday, a first, or the first of January. */
function firstHour(size: BucketSize, [year, month, day, hour]: Wall): Wall {
  if (size === "hour") return [year, month, day, hour];
  if (size === "day") return [year, month, day, 0];
  if (size === "month") return [year, month, 1, 0];
  if (size === "year") return [year, 0, 1, 0];
  const monday = (new Date(Date.UTC(year, month, day)).getUTCDay() + 6) % 7;
  const date = new Date(Date.UTC(year, month, day - monday));
  return [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(), 0];
}

const next: Readonly<Record<Exclude<BucketSize, "hour">, (wall: Wall) => Wall>> = {
  day: ([year, month, day]) => [year, month, day + 1, 0],
  week: ([year, month, day]) => [year, month, day + 7, 0],
  month: ([year, month]) => [year, month + 1, 1, 0],
  year: ([year]) => [year + 1, 0, 1, 0],
};

/**
 * The first time at which a zone's clock shows this hour or a later one. When clocks go forward at midnight, a day begins
 * at 1:00. `near`: a time whose offset is probably the same, since reading a zone's clock is slow.
 */
function instantOf([year, month, day, hour]: Wall, clock: (at: number) => Wall, near?: number): number {
  const wanted = Date.UTC(year, month, day, hour);
  const shown = (at: number) => Date.UTC(...clock(at));
  const quarter = hourMs / 4; // offsets of zones are multiples of it
  if (near !== undefined) {
    const guess = near + wanted - shown(near);
    for (const at of [guess, guess + wanted - shown(guess)])
      if (shown(at) >= wanted && shown(at - quarter) < wanted) return at;
  }
  let at = wanted - 15 * hourMs;
  // in hours while the clock is far behind, then in quarters
  while (shown(at + hourMs) < wanted) at += hourMs;
  while (shown(at) < wanted) at += quarter;
  return at;
}

/**
 * The buckets that a time falls into, one after the other, the first and last whole: from a Tuesday to a Wednesday is one
 * week. In a zone other than UTC each takes about 10 µs.
 */
export function* bucketsOf({
  from,
  to,
  size,
  timeZone,
}: {
  from: number;
  to: number;
  size: BucketSize;
  timeZone: string;
}): Generator<Bucket> {
  const read = wallClock(timeZone);
  const known = new Map<number, Wall>(); // each bucket's beginning is looked at several times
  const clock = (at: number): Wall => {
    const wall = known.get(at) ?? read(at);
    known.set(at, wall);
    return wall;
  };
  // hours begin where the zone's clock shows a whole one; repeated hours are hours, too
  let begin = size === "hour" ? Math.floor(from / hourMs) * hourMs : instantOf(firstHour(size, clock(from)), clock);
  while (begin < to) {
    const end = size === "hour" ? begin + hourMs : instantOf(next[size](firstHour(size, clock(begin))), clock, begin);
    yield { from: begin, to: end };
    for (const at of known.keys()) if (at < begin) known.delete(at);
    begin = end;
  }
}
