import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { limits } from "./limits/index.js";
import { type Lane, Turns } from "./turns.js";

/** Turns of 10 ms by a clock that advances only with work. */
function open() {
  let now = 0;
  const rests: (() => void)[] = [];
  const after = (ms: number, call: () => void) => {
    const end = () => {
      now += ms;
      call();
    };
    rests.push(end);
    return setTimeout(() => {}, 0);
  };
  const turns = new Turns(10, { now: () => now, after });
  const work = (ms: number) => {
    now += ms;
  };
  return { turns, work, rests };
}

/** The turn of the event loop, counted from now, in which each piece of work was done. */
async function turnsOf(begin: (done: (n: number) => void) => void, count: number): Promise<number[]> {
  const ended: number[] = [];
  let now = 0;
  const beat = () => {
    now++;
    if (Object.keys(ended).length < count) setImmediate(beat);
  };
  setImmediate(beat); // before the turns' own
  begin((n) => {
    ended[n] = now;
  });
  while (Object.keys(ended).length < count) await turn();
  return ended;
}

describe("Turns of the event loop", () => {
  it("begin no more work of many who ask at once than one after another", async () => {
    const { turns, work } = open();
    const begin = (done: (n: number) => void) => {
      for (let n = 0; n < 4; n++)
        void turns.run([n], () => {
          work(10);
          done(n);
        });
    };
    expect(await turnsOf(begin, 4)).toEqual([0, 1, 2, 3]);
  });

  it("let short work begin at once, and leave room for others", async () => {
    const { turns, work } = open();
    for (let n = 0; n < 9; n++) {
      expect(turns.take(["a"])).toBeUndefined();
      work(1);
    }
    expect(turns.isOver).toBe(false);
  });

  it("let no more work begin once their time has passed: long work makes only one turn long", async () => {
    const { turns, work } = open();
    const act = (each: () => void) => (turns.isOver ? turns.wait(["a"], each) : each());
    const ended = await turnsOf((done) => {
      for (let n = 0; n < 6; n++)
        act(() => {
          work(6);
          done(n);
        });
    }, 6);
    expect(ended).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it("count the work that follows in promises", async () => {
    const { turns, work } = open();
    work(10);
    turns.take(["a"]);
    work(10);
    const ended = await turnsOf((done) => {
      for (let n = 0; n < 3; n++)
        void turns.take(["a"])?.then(async () => {
          await Promise.resolve();
          work(10);
          done(n);
        });
    }, 3);
    expect(ended).toEqual([...new Set(ended)]);
  });

  it("alternate among owners, and for each owner among endpoints", async () => {
    const { turns, work } = open();
    turns.take(["x"]);
    work(10);
    const done: string[] = [];
    const lanes: Lane[] = [["a", 1], ["a", 1], ["a", 1], ["a", 2], ["a", 2], ["b"], ["b"], ["c"]];
    await turnsOf((ended) => {
      lanes.forEach((lane, n) => {
        turns.wait(lane, () => {
          done.push(lane.join(""));
          work(10);
          ended(n);
        });
      });
    }, lanes.length);
    expect(done).toEqual(["a1", "b", "c", "a2", "b", "a1", "a2", "a1"]);
  });

  it("give owners the same time, however many pieces their work has", async () => {
    const { turns, work } = open();
    turns.take(["x"]);
    work(10);
    const done: string[] = [];
    const pieces = [
      ...Array<number>(12)
        .fill(1)
        .map((ms) => ["short", ms] as const),
      ["long", 4],
      ["long", 4],
    ] as const;
    await turnsOf((ended) => {
      pieces.forEach(([who, ms], n) => {
        turns.wait([who], () => {
          done.push(who);
          work(ms);
          ended(n);
        });
      });
    }, pieces.length);
    const short = (count: number) => Array<string>(count).fill("short");
    expect(done).toEqual([...short(1), "long", ...short(3), "long", ...short(8)]);
  });

  it("remember what an owner used who asks for the next piece only after the last one", async () => {
    const { turns, work } = open();
    turns.take(["x"]);
    work(10);
    const done: string[] = [];
    let asks = false;
    const long = () =>
      turns.wait(["long"], () => {
        done.push("long");
        work(4);
        asks = true;
      });
    for (let n = 0; n < 40; n++)
      turns.wait(["short"], () => {
        done.push("short");
        work(1);
        if (asks && done.length < 30) long();
        asks = false;
      });
    long();
    while (done.filter((who) => who === "short").length < 40) await turn();
    const [first, second] = done.flatMap((who, n) => (who === "long" ? [n] : []));
    expect((second as number) - (first as number)).toBeGreaterThan(2);
  });

  it("count at most a part of a long stop as an owner's work", async () => {
    const { turns, work } = open();
    turns.take(["x"]);
    work(10);
    const done: string[] = [];
    const act = (who: string, ms: number) =>
      turns.wait([who], () => {
        done.push(who);
        work(ms);
      });
    act("a", 1);
    for (let n = 0; n < 300; n++) act("b", 1);
    turns.wait(["stopped", 1], () => work(2_000));
    act("stopped", 1);
    while (done.length < 302) await turn();
    expect(done.indexOf("stopped")).toBeLessThan(2 * limits.turnRestMsMax);
  });

  it("count from now for an owner who comes later: nobody saves up time, nobody pays for it", async () => {
    const { turns, work } = open();
    turns.take(["x"]);
    work(10);
    const done: string[] = [];
    let left = 24;
    const act = (who: string, ms: number, follow = () => {}) =>
      turns.wait([who], () => {
        done.push(who);
        work(ms);
        follow();
        left--;
      });
    const come = () => {
      for (let n = 0; n < 3; n++) act("b", 1);
    };
    for (let n = 0; n < 20; n++) act("a", 1, n === 9 ? come : undefined);
    act("c", 8);
    while (left > 0) await turn();
    const later = done.slice(done.indexOf("b"));
    expect(later.slice(0, 4).sort()).toEqual(["a", "a", "b", "b"]);
    expect(done.indexOf("c")).toBe(1);
  });

  it("let a lane rest for as long as its work took, if that was longer than a turn; others go on", async () => {
    const { turns, work, rests } = open();
    turns.take(["x"]);
    work(10);
    const done: string[] = [];
    const act = (lane: Lane, ms: number) =>
      turns.wait(lane, () => {
        work(ms);
        done.push(lane.join(""));
      });
    for (let n = 0; n < 3; n++) act(["a", 1], 30);
    for (let n = 0; n < 4; n++) act(["a", 2], 9);
    while (rests.length === 0) await turn();
    expect(done).toEqual(["a1", "a2", "a2", "a2", "a2", "a1"]); // 36 ms of the second lane's work are a rest, too
    act(["b"], 1);
    await turn();
    await turn();
    expect(done.at(-1)).toBe("b");
    rests.at(-1)?.();
    await turn();
    await turn();
    expect(done.slice(6)).toEqual(["b", "a1"]);
  });

  it("report a failure to its own caller", async () => {
    const { turns, work } = open();
    turns.take(["x"]);
    work(10);
    const fail = () => {
      throw new Error("no such table");
    };
    const outcomes = await Promise.allSettled(
      [() => 1, fail, () => 2].map((each) => turns.run(["a"], each as () => 1)),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  it("end when no work waits: an idle process is not woken", async () => {
    const { turns } = open();
    expect(turns.take(["a"])).toBeUndefined();
    const handles = () => process.getActiveResourcesInfo().filter((kind) => kind === "Immediate").length;
    const before = handles();
    await turn();
    expect(handles()).toBeLessThanOrEqual(Math.max(0, before - 1));
  });
});
