import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PlainSignal, realTime, type SystemClock, systemClock } from "./clock.js";
import { limits } from "./limits/index.js";

const machine = vi.hoisted(() => ({ wall: 0, mono: 0, uptime: 0 }));
vi.mock("node:os", async (original) => ({
  ...(await original<typeof import("node:os")>()),
  uptime: () => machine.uptime / 1_000,
}));

const startAt = 1_790_000_000_000;
let clock: SystemClock;
let gaps: number[];

/** Lets time pass on all of the machine's clocks, with a tick as often as usual. */
function pass(ms: number): void {
  for (let left = ms; left > 0; left -= 1_000) {
    const step = Math.min(left, 1_000);
    machine.wall += step;
    machine.mono += step;
    machine.uptime += step;
    vi.advanceTimersByTime(step);
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  Object.assign(machine, { wall: startAt, mono: 5_000, uptime: 90_000 });
  vi.spyOn(Date, "now").mockImplementation(() => machine.wall);
  vi.spyOn(performance, "now").mockImplementation(() => machine.mono);
  clock = systemClock();
  gaps = [];
  clock.onGap((gapMs) => gaps.push(gapMs));
});
afterEach(() => {
  clock.stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("The clock", () => {
  it("begins at wall-clock time and runs steadily", () => {
    expect(clock.now()).toBe(startAt);
    pass(90_500);
    expect(clock.now()).toBe(startAt + 90_500);
    expect(gaps).toEqual([]);
  });

  it.each([
    ["forward", 3_600_000],
    ["back", -3_600_000],
  ])("does not follow a wall clock that jumps an hour %s, but slews towards it by a second a minute", (_, jump) => {
    machine.wall += jump;
    expect(clock.now()).toBe(startAt);
    pass(60_000);
    expect(clock.now() - startAt - 60_000).toBeCloseTo(Math.sign(jump) * 1_000, -1);
    expect(gaps).toEqual([]);
  });

  it("never goes back while it slews back", () => {
    machine.wall -= 3_600_000;
    let last = clock.now();
    for (let n = 0; n < 600; n++) {
      pass(100);
      expect(clock.now()).toBeGreaterThan(last);
      last = clock.now();
    }
  });

  it("reaches the wall clock and stays there", () => {
    machine.wall += 1_500;
    pass(300_000);
    expect(clock.now()).toBe(machine.wall);
  });

  it("includes the time of a machine's suspension at once, and reports the gap", () => {
    machine.wall += 600_000;
    machine.uptime += 600_000;
    pass(1_000);
    expect(clock.now()).toBe(startAt + 601_000);
    expect(gaps).toEqual([600_000]);
    pass(10_000);
    expect([clock.now(), gaps.length]).toEqual([startAt + 611_000, 1]);
  });

  it("reports the gap of a suspended process, which counts as time", () => {
    machine.wall += 30_000;
    machine.mono += 30_000;
    machine.uptime += 30_000;
    pass(1_000);
    expect(clock.now()).toBe(startAt + 31_000);
    expect(gaps).toEqual([30_000]);
  });

  it("reports no gap for a tick that is a little late", () => {
    machine.wall += 4_000;
    machine.mono += 4_000;
    machine.uptime += 4_000;
    pass(1_000);
    expect(gaps).toEqual([]);
  });

  it("does not tick after it is stopped", () => {
    clock.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("A clock that continues the previous one", () => {
  const hour = 3_600_000;
  /** The server is away for a minute, during which the wall clock jumps; `kept` is the bearing that it stored. */
  const startAgain = (jump: number, kept = clock.bearing()): number => {
    clock.stop();
    Object.assign(machine, { wall: machine.wall + 60_000 + jump, uptime: machine.uptime + 60_000, mono: 100 });
    clock = systemClock(kept);
    return clock.now() - startAt;
  };

  it.each([
    ["forward", hour],
    ["back", -hour],
  ])("does not follow a wall clock that jumped an hour %s meanwhile, but slews towards it", (_, jump) => {
    expect(startAgain(jump)).toBe(60_000);
    pass(60_000);
    expect(clock.now() - startAt - 120_000).toBeCloseTo(Math.sign(jump) * 1_000, -1);
  });

  it("also continues from a bearing stored a minute before a crash", () => {
    const kept = clock.bearing();
    pass(59_000);
    expect(startAgain(hour, kept)).toBe(119_000);
  });

  it.each([
    ["after a reboot of the machine", () => clock.bearing()!.replace(/\S+$/, "another-boot")],
    ["if nothing was stored", () => ""],
    ["if the stored bearing cannot be read", () => "\0\0"],
    ["if the stored bearing is cut short", () => clock.bearing()!.slice(0, 12)],
    ["if the stored bearing has no number", () => clock.bearing()!.replace(/^\d+/, "soon")],
    [
      "if the machine has run for less time than the bearing says",
      () => clock.bearing()!.replace(/ \d+ /, " 999999999 "),
    ],
  ])("trusts the wall clock %s", (_, kept) => {
    expect(startAgain(hour, kept())).toBe(hour + 60_000);
  });

  it("trusts a wall clock that differs by more than any jump", () => {
    expect(startAgain(limits.clockDoubtMsMax + 1)).toBe(limits.clockDoubtMsMax + 60_001);
  });
});

describe("A sleep", () => {
  const watch = (ms: number, signal?: AbortSignal) => {
    const seen = { over: false };
    void clock.sleep(ms, signal).then(() => (seen.over = true));
    return seen;
  };
  const settled = () => new Promise((done) => setImmediate(done));

  it("lasts for the given time", async () => {
    const sleep = watch(500);
    vi.advanceTimersByTime(499);
    await settled();
    expect(sleep.over).toBe(false);
    vi.advanceTimersByTime(1);
    await settled();
    expect(sleep.over).toBe(true);
  });

  it("ends at once when its signal aborts, and leaves no timer behind", async () => {
    const timers = vi.getTimerCount();
    const waker = new AbortController();
    const sleep = watch(500, waker.signal);
    waker.abort();
    await settled();
    expect([sleep.over, vi.getTimerCount()]).toEqual([true, timers]);
    await clock.sleep(500, AbortSignal.abort());
    expect(vi.getTimerCount()).toBe(timers);
  });

  it("is not cut to zero by a time beyond a timer's range", async () => {
    clock.stop(); // it would tick very often in that time
    const sleep = watch(3_000_000_000);
    vi.advanceTimersByTime(2_000_000_000);
    await settled();
    expect(sleep.over).toBe(false);
  });

  it("of zero or negative length ends in the next moment", async () => {
    const sleep = watch(-5);
    vi.advanceTimersByTime(1);
    await settled();
    expect(sleep.over).toBe(true);
  });
});

describe("A scheduled call", () => {
  it("is made once, after its time", () => {
    const call = vi.fn();
    clock.after(500, call);
    vi.advanceTimersByTime(499);
    expect(call).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1_000);
    expect(call).toHaveBeenCalledOnce();
  });

  it("is not made once its timer is cancelled, whichever kind it is", () => {
    const call = vi.fn();
    realTime.cancel(realTime.after(500, call));
    realTime.cancel(realTime.every(500, call));
    realTime.cancel(undefined);
    vi.advanceTimersByTime(2_000);
    expect(call).not.toHaveBeenCalled();
  });
});

describe("A plain signal", () => {
  it("tells each listener once, except removed ones", () => {
    const signal = new PlainSignal();
    const heard: string[] = [];
    const taken = () => void heard.push("taken back");
    signal.addEventListener("abort", () => {
      heard.push("first");
      signal.removeEventListener("abort", taken);
    });
    signal.addEventListener("abort", () => void heard.push("second"));
    signal.addEventListener("abort", taken);
    expect(signal.aborted).toBe(false);
    signal.abort();
    signal.abort();
    expect([signal.aborted, heard]).toEqual([true, ["first", "second"]]);
  });
});
