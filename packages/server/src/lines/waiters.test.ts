import { describe, expect, it } from "vitest";
import type { Bell } from "../bell.js";
import { localBell } from "../bells/local.js";
import type { Clock } from "../clock.js";
import { waitFor } from "./waiters.js";

/** A clock that stands until the test moves it. */
function movableClock(): Clock & { move(ms: number): void; sleepers(): number } {
  let now = 1_000;
  const sleepers = new Set<{ untilAt: number; wake: () => void }>();
  return {
    now: () => now,
    wallNow: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const sleeper = {
          untilAt: now + ms,
          wake: () => {
            sleepers.delete(sleeper);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", sleeper.wake);
      }),
    after: () => {},
    onGap: () => {},
    stop: () => {},
    move: (ms) => {
      now += ms;
      for (const sleeper of [...sleepers]) if (sleeper.untilAt <= now) sleeper.wake();
    },
    sleepers: () => sleepers.size,
  };
}
const settled = () => new Promise((done) => setImmediate(done));

interface State {
  value: string;
  reads: number;
  answer: string | undefined;
}

/** Waits up to 500 ms for a value that the test sets; `during` runs in the middle of each read. */
function open(options: { waitMs?: number; gone?: AbortSignal; during?: (state: State, bell: Bell) => void } = {}) {
  const bell = localBell();
  const clock = movableClock();
  const state: State = { value: "no", reads: 0, answer: undefined };
  const wait = {
    topic: "job:a" as const,
    untilAt: clock.now() + (options.waitMs ?? 500),
    signals: [new AbortController().signal, options.gone ?? new AbortController().signal],
  };
  const answered = waitFor({ bell, clock }, wait, async () => {
    const { value } = state;
    state.reads++;
    options.during?.(state, bell);
    return { value, done: value === "yes" };
  }).then((value) => (state.answer = value));
  return { bell, clock, state, answered };
}

describe("A wait for one value", () => {
  it("is answered at once if the result exists", async () => {
    const bell = localBell();
    const clock = movableClock();
    const wait = { topic: "job:a" as const, untilAt: clock.now() + 500, signals: [] };
    expect(await waitFor({ bell, clock }, wait, async () => ({ value: 1, done: true }))).toBe(1);
    expect(clock.sleepers()).toBe(0);
  });

  it("sleeps until its topic rings, then reads again", async () => {
    const { bell, clock, state, answered } = open();
    await settled();
    expect([state.reads, clock.sleepers()]).toEqual([1, 1]);
    bell.ring("job:b");
    await settled();
    expect(state.reads).toBe(1);
    bell.ring("job:a");
    await settled();
    expect([state.reads, state.answer]).toEqual([2, undefined]);
    state.value = "yes";
    bell.ring("job:a");
    expect(await answered).toBe("yes");
    expect([state.reads, clock.sleepers()]).toEqual([3, 0]);
  });

  it("misses no ring that comes while it reads", async () => {
    const { state, answered } = open({
      during: (now, bell) => {
        if (now.value === "yes") return;
        now.value = "yes";
        bell.ring("job:a");
      },
    });
    expect(await answered).toBe("yes");
    expect(state.reads).toBe(2);
  });

  it("is answered with the present state when its time is over", async () => {
    const { clock, state, answered } = open();
    await settled();
    clock.move(499);
    await settled();
    expect(state.answer).toBeUndefined();
    clock.move(1);
    expect(await answered).toBe("no");
    expect(state.reads).toBe(2);
  });

  it("is answered with the result if both come in the same millisecond", async () => {
    const { clock, state, answered } = open();
    await settled();
    state.value = "yes";
    clock.move(500);
    expect(await answered).toBe("yes");
  });

  it("reads only once if it must not wait", async () => {
    const { state, answered } = open({ waitMs: 0 });
    expect([await answered, state.reads]).toEqual(["no", 1]);
  });

  it("ends when its caller has disconnected, asleep or reading", async () => {
    const gone = new AbortController();
    const asleep = open({ gone: gone.signal });
    await settled();
    gone.abort();
    expect(await asleep.answered).toBe("no");
    expect(asleep.clock.sleepers()).toBe(0);
    const before = open({ gone: AbortSignal.abort() });
    expect([await before.answered, before.state.reads]).toEqual(["no", 1]);
    const inRead = new AbortController();
    const reading = open({ gone: inRead.signal, during: () => inRead.abort() });
    expect([await reading.answered, reading.state.reads]).toEqual(["no", 1]);
  });

  it("leaves nothing behind, even if reading fails", async () => {
    const listening = new Set<() => void>();
    const bell = {
      ...localBell(),
      on: (_: unknown, listener: () => void) => {
        listening.add(listener);
        return () => void listening.delete(listener);
      },
    };
    const clock = movableClock();
    const wait = { topic: "job:a" as const, untilAt: clock.now() + 500, signals: [] };
    const failing = waitFor({ bell, clock }, wait, async () => {
      expect(listening.size).toBe(1);
      throw new Error("the job is gone");
    });
    await expect(failing).rejects.toThrow("the job is gone");
    expect(listening.size).toBe(0);
  });
});
