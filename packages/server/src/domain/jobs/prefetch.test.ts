import { describe, expect, it } from "vitest";
import { type Habits, hearList, hearTake, isPrefetching, nextOf, noHabits } from "./prefetch.js";

const first = { id: "first", starts: 1, takenAt: 100 };
const second = { id: "second", starts: 1, takenAt: 105 };
const both = [first, second];
const of = (...ids: string[]): ReadonlySet<string> => new Set(ids);
const busy = (at: number, before: Habits = noHabits) => hearTake(before, at, { count: 1, isBusy: true });
const idle = (at: number) => hearTake(noHabits, at, { count: 1, isBusy: false });

describe("A worker prefetches", () => {
  it.each([
    { it: "if a ping names only an earlier job", habits: busy(104), listed: of("first"), shown: true },
    { it: "if its take is unknown to this server", habits: noHabits, listed: of("first"), shown: true },
    { it: "not if the ping names both jobs", habits: busy(104), listed: of("first", "second"), shown: false },
    { it: "not if the ping names no job", habits: busy(104), listed: of(), shown: false },
    { it: "not if the ping names another worker's job", habits: busy(104), listed: of("another"), shown: false },
    { it: "not if the ping names the later job", habits: busy(104), listed: of("second"), shown: false },
    { it: "not if it has asked again", habits: busy(106), listed: of("first"), shown: false },
    { it: "not if its take did not report a job in progress", habits: idle(104), listed: of("first"), shown: false },
    {
      it: "not if it has ever asked for several jobs",
      habits: busy(104, hearTake(noHabits, 1, { count: 2, isBusy: true })),
      listed: of("first"),
      shown: false,
    },
    {
      it: "not if a ping has ever named several jobs",
      habits: hearList(busy(104), both, of("first", "second")).habits,
      listed: of("first"),
      shown: false,
    },
  ])("$it", ({ habits, listed, shown }) => {
    const heard = hearList(habits, both, listed);
    expect([isPrefetching(heard.habits), heard.ahead]).toEqual([shown, shown ? second : undefined]);
  });

  it("until a ping has named several jobs", () => {
    const { habits } = hearList(busy(104), both, of("first"));
    expect(isPrefetching(hearList(habits, both, of("first", "second")).habits)).toBe(false);
  });
});

describe("The job that a worker may not have begun", () => {
  it("is the last that it was given, in its present start, until a ping names it", () => {
    expect(nextOf(busy(104), both)).toBe(second);
    const { habits, begun } = hearList(busy(104), [second], of("second"));
    expect([begun, nextOf(habits, [second])]).toEqual([[second], undefined]);
    expect(nextOf(habits, [{ ...second, starts: 2 }])).toMatchObject({ starts: 2 });
  });

  it("is named for the first time only once", () => {
    const { habits } = hearList(busy(104), [second], of("second"));
    expect(hearList(habits, [second], of("second")).begun).toEqual([]);
  });

  it("is the other of two jobs taken in the same millisecond, if a ping names one", () => {
    const same = { ...second, takenAt: first.takenAt };
    expect(hearList(busy(100), [same, first], of("first")).ahead).toBe(same);
    expect(hearList(busy(100), [first, same], of("first")).ahead).toBe(same);
  });
});
