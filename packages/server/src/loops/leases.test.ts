import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { localBell } from "../bells/local.js";
import type { MillraceEvent } from "../events.js";
import { MovableClock } from "../testing/movable-clock-fixture.js";
import { Leases, runOwned } from "./leases.js";
import type { Loop } from "./loop.js";

let clock: MovableClock;
let bell: ReturnType<typeof localBell>;
let stopping: AbortController;
let running: Promise<void>[];
let events: MillraceEvent[];
beforeEach(() => {
  clock = new MovableClock();
  bell = localBell();
  stopping = new AbortController();
  running = [];
  events = [];
});
afterEach(async () => {
  stopping.abort();
  await pass(10_000);
  await Promise.all(running);
});

/** Lets time pass, and whatever wakes up finish its work. */
const pass = (ms: number) =>
  clock.advance(ms, async () => {
    for (let n = 0; n < 5; n++) await new Promise((turn) => setImmediate(turn));
  });

/** A server with its own leases, and a record of what its loops did, by loop number. */
function server() {
  const leases = new Leases(clock);
  const ticks: { loop: number; at: number; isOver: boolean }[] = [];
  let loops = 0;
  const own = (tick?: Loop["tick"], listen?: Loop["listen"]) => {
    const make = (): Loop => {
      const loop = ++loops;
      return {
        name: "scale",
        topics: ["demand"],
        gapMs: 10,
        ...(listen ? { listen } : {}),
        tick: async (now, signal) => {
          ticks.push({ loop, at: now, isOver: !leases.has("scale") });
          return tick ? tick(now, signal) : now + 100;
        },
      };
    };
    running.push(runOwned(make, leases, { bell, clock, emit: (event) => void events.push(event) }, stopping.signal));
  };
  const hold = (ms: number, ...names: string[]) => leases.hold(new Set(names), clock.now() + ms);
  return { leases, ticks, own, hold };
}

describe("A loop that has one owner", () => {
  it("runs nowhere until a server has its lease, and then only there", async () => {
    const [one, other] = [server(), server()];
    one.own();
    other.own();
    await pass(1_000);
    expect([one.ticks, other.ticks]).toEqual([[], []]);
    one.hold(60_000, "scale");
    other.hold(60_000, "watch-workers");
    await pass(1_000);
    expect(one.ticks.length).toBeGreaterThan(5);
    expect(other.ticks).toEqual([]);
  });

  it("stops when its owner loses it, starts with the next owner, and starts again if the first gets it back", async () => {
    const [one, other] = [server(), server()];
    one.own();
    other.own();
    one.hold(60_000, "scale");
    await pass(500);
    one.hold(60_000);
    other.hold(60_000, "scale");
    await pass(50);
    const before = one.ticks.length;
    await pass(500);
    expect(one.ticks).toHaveLength(before);
    expect(other.ticks.length).toBeGreaterThan(3);
    other.hold(60_000);
    one.hold(60_000, "scale");
    await pass(500);
    expect(one.ticks.at(-1)?.loop).toBe(2);
    expect(one.ticks[0]?.loop).toBe(1);
  });

  it("continues while its lease is renewed", async () => {
    const one = server();
    one.own();
    for (let n = 0; n < 10; n++) {
      one.hold(4_000, "scale", "watch-workers");
      await pass(1_000);
    }
    expect(new Set(one.ticks.map(({ loop }) => loop))).toEqual(new Set([1]));
    expect(one.ticks.length).toBeGreaterThan(50);
  });

  it("never ticks after its lease has run out, even without notice and however often it is rung", async () => {
    const one = server();
    one.own();
    one.hold(1_000, "scale");
    const endsAt = clock.now() + 1_000;
    for (let n = 0; n < 100; n++) {
      await pass(50);
      bell.ring("demand");
    }
    expect(one.ticks.length).toBeGreaterThan(5);
    expect(one.ticks.filter(({ at, isOver }) => at >= endsAt || isOver)).toEqual([]);
    await pass(100);
    one.hold(1_000, "scale");
    await pass(500);
    expect(one.ticks.at(-1)?.loop).toBe(2);
  });

  it("is told in the middle of a tick that its lease has run out, though nobody says so", async () => {
    const one = server();
    const told: boolean[] = [];
    one.own(async (now, signal) => {
      await clock.sleep(30_000, signal);
      told.push(signal.aborted);
      return now;
    });
    one.hold(5_000, "scale");
    await pass(3_000);
    one.hold(5_000, "scale");
    await pass(4_900);
    expect(told).toEqual([]);
    await pass(200);
    expect(told).toEqual([true]);
  });

  it("stops listening each time it ends", async () => {
    const one = server();
    let listening = 0;
    one.own(undefined, () => {
      listening++;
      return () => listening--;
    });
    for (let n = 0; n < 5; n++) {
      one.hold(60_000, "scale");
      await pass(200);
      expect(listening).toBe(1);
      one.hold(60_000);
      await pass(200);
      expect(listening).toBe(0);
    }
  });

  it("ends when the server stops, whether it has the lease or waits for it", async () => {
    const [one, other] = [server(), server()];
    one.own();
    other.own();
    one.hold(60_000, "scale");
    await pass(100);
    stopping.abort();
    await pass(1_000);
    await Promise.all(running);
    expect(other.ticks).toEqual([]);
  });

  it("runs without leases if there is only one server", async () => {
    let ticks = 0;
    const make = (): Loop => ({
      name: "scale",
      topics: [],
      gapMs: 10,
      tick: async (now) => now + 100 * Math.sign(++ticks),
    });
    running.push(runOwned(make, undefined, { bell, clock, emit: () => {} }, stopping.signal));
    await pass(1_000);
    expect(ticks).toBeGreaterThan(5);
  });
});
