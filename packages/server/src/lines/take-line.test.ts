import { describe, expect, it } from "vitest";
import { limits } from "../limits/index.js";
import type { Ask, Taken, TakenJob } from "../store/index.js";
import { MovableClock } from "../testing/movable-clock-fixture.js";
import { TakeLine } from "./take-line.js";

const jobOf = (id: string, workerNo: number): TakenJob => ({
  no: 1,
  id,
  workerNo,
  starts: 1,
  takenAt: 1,
  queuedAt: 1,
  deadlineAt: 2,
  input: "{}",
  inputBytes: 2,
  webhook: undefined,
  s3Config: undefined,
  policy: undefined,
  trace: undefined,
});

/** A line over a queue that the test fills; each turn waits until the test lets it continue. */
function openLine(busy: Readonly<Record<number, number>> = {}) {
  const waiting: string[] = [];
  const turns: { asks: readonly Ask[]; answer: () => void; fail: (error: Error) => void }[] = [];
  const errors: unknown[] = [];
  let open = 0;
  const take = (asks: readonly Ask[]) =>
    new Promise<Taken>((resolve, reject) => {
      expect(++open).toBe(1);
      const answer = () => {
        open--;
        const jobs: TakenJob[] = [];
        let dry = false;
        for (const { workerNo, count } of asks) {
          const ids = waiting.splice(0, count);
          jobs.push(...ids.map((id) => jobOf(id, workerNo)));
          dry ||= ids.length < count;
        }
        resolve({ jobs, dry });
      };
      const fail = (error: Error) => {
        open--;
        reject(error);
      };
      turns.push({ asks, answer, fail });
    });
  const clock = new MovableClock();
  const onError = (error: unknown) => void errors.push(error);
  const line = new TakeLine({ clock, take, busyAt: (no) => busy[no] ?? 0, onError });
  /** Lets the present turn end, with everything that follows from it. */
  const end = async (error?: Error) => {
    const turn = turns.at(-1)!;
    if (error) turn.fail(error);
    else turn.answer();
    await settled();
  };
  const stand = (workerNo: number, count = 1) => {
    const place = line.stand(workerNo, count);
    const seen: { ids?: string[] } = {};
    void place.jobs.then((jobs) => (seen.ids = jobs.map(({ id }) => id)));
    return { ...place, seen };
  };
  return { clock, line, waiting, turns, errors, end, stand };
}
const settled = () => new Promise<void>((done) => setImmediate(done));

describe("A line", () => {
  it("gives waiting jobs to waiting workers, the most recently busy worker first", async () => {
    const { waiting, turns, end, stand, line } = openLine({ 1: 10, 2: 30, 3: 20 });
    waiting.push("a", "b");
    const first = stand(9);
    const [one, two, three] = [stand(1), stand(2), stand(3)];
    await end();
    expect(first.seen.ids).toEqual(["a"]);
    expect(turns[1]?.asks.map(({ workerNo }) => workerNo)).toEqual([2, 3, 1]);
    await end();
    expect([one.seen.ids, two.seen.ids, three.seen.ids]).toEqual([undefined, ["b"], undefined]);
    expect(line.standing).toBe(2);
  });

  it("that has only polls of workers that may take nothing takes no jobs, and reports possible jobs", async () => {
    const closed = new Set([1, 2]);
    const lefts: number[] = [];
    let turns = 0;
    const line = new TakeLine({
      clock: new MovableClock(),
      take: async () => ({ jobs: [], dry: ++turns > 2 }),
      busyAt: () => 0,
      mayTake: (workerNo) => !closed.has(workerNo),
      onError: () => {},
      onLeft: () => void lefts.push(turns),
    });
    line.stand(1, 1);
    await settled();
    expect([line.standing, line.canServe, lefts]).toEqual([1, false, [1]]);
    const open = line.stand(3, 1);
    await settled();
    expect([line.canServe, lefts]).toEqual([true, [1]]);
    open.leave();
    expect([line.standing, line.canServe]).toEqual([1, false]);
    closed.delete(1);
    expect(line.canServe).toBe(true);
  });

  it("runs one turn at a time, however often it is rung", async () => {
    const { line, turns, end, stand } = openLine();
    stand(1);
    line.ring();
    line.ring();
    stand(2);
    expect(turns).toHaveLength(1);
    await end();
    expect(turns).toHaveLength(2);
    expect(turns[1]?.asks).toHaveLength(2);
    await end();
    expect(turns).toHaveLength(2);
  });

  it("sends no query once its queue is empty, until it is rung", async () => {
    const { line, waiting, turns, end, stand } = openLine();
    const one = stand(1);
    await end();
    const two = stand(2);
    await settled();
    expect(turns).toHaveLength(1);
    waiting.push("a", "b");
    line.ring();
    await end();
    expect([turns.length, one.seen.ids, two.seen.ids]).toEqual([2, ["a"], ["b"]]);
  });

  it("runs one more turn for a ring during a turn that found nothing", async () => {
    const { line, waiting, turns, stand, end } = openLine();
    const one = stand(1);
    turns[0]!.answer();
    waiting.push("a");
    line.ring();
    await settled();
    expect(turns).toHaveLength(2);
    await end();
    expect(one.seen.ids).toEqual(["a"]);
  });

  it("continues while its takes come back full", async () => {
    const { line, waiting, turns, end, stand } = openLine();
    waiting.push("a", "b", "c");
    const one = stand(1, 2);
    const two = stand(2, 2);
    await end();
    expect(one.seen.ids).toEqual(["a", "b"]);
    await end();
    expect([two.seen.ids, turns.length, line.standing]).toEqual([["c"], 2, 0]);
  });

  it("sends no query while no worker waits", async () => {
    const { line, turns, end, stand } = openLine();
    line.ring();
    expect(turns).toHaveLength(0);
    const one = stand(1);
    one.leave();
    await end();
    line.ring();
    await settled();
    expect(turns).toHaveLength(1);
  });

  it("lets a worker leave empty-handed", async () => {
    const { line, end, stand } = openLine();
    const one = stand(1);
    await end();
    one.leave();
    await settled();
    expect([one.seen.ids, line.standing]).toEqual([[], 0]);
  });

  it("still gives its jobs to a worker that leaves during the turn that took them", async () => {
    const { line, waiting, end, stand } = openLine();
    waiting.push("a");
    const one = stand(1);
    one.leave();
    expect(one.seen.ids).toBeUndefined();
    await end();
    expect([one.seen.ids, line.standing]).toEqual([["a"], 0]);
  });

  it("answers a worker that leaves during a turn at that turn's end, and takes no more for it", async () => {
    const { line, turns, end, stand } = openLine();
    const one = stand(1);
    line.ring();
    one.leave();
    await end();
    expect([one.seen.ids, turns.length, line.standing]).toEqual([[], 1, 0]);
  });

  it("gives a worker only one place: a newer poll ends the previous one", async () => {
    const { line, waiting, end, stand } = openLine();
    const former = stand(1);
    await end();
    const newer = stand(1);
    await settled();
    expect([former.seen.ids, newer.seen.ids, line.standing]).toEqual([[], undefined, 1]);
    waiting.push("a");
    line.ring();
    await end();
    expect(newer.seen.ids).toEqual(["a"]);
  });

  it("loses no job when a newer poll comes during the turn", async () => {
    const { line, waiting, end, turns, stand } = openLine();
    waiting.push("a", "b");
    const former = stand(1);
    const newer = stand(1);
    await end();
    if (turns.length > 1) await end();
    expect([...(former.seen.ids ?? []), ...(newer.seen.ids ?? [])].sort()).toEqual(["a", "b"]);
    expect(line.standing).toBe(0);
  });

  describe("after a turn that failed", () => {
    it("keeps the waiting workers, reports the error, and tries again a second later", async () => {
      const { clock, waiting, turns, errors, end, stand } = openLine();
      waiting.push("a");
      const one = stand(1);
      const gone = stand(2);
      gone.leave();
      await end(new Error("no connection"));
      expect([errors.length, turns.length, one.seen.ids, gone.seen.ids]).toEqual([1, 1, undefined, []]);
      await clock.advance(limits.waitMsMin - 1, settled);
      expect(turns).toHaveLength(1);
      await clock.advance(1, settled);
      expect(turns).toHaveLength(2);
      await end();
      expect(one.seen.ids).toEqual(["a"]);
    });

    it("tries again at once when it is rung", async () => {
      const { line, turns, end, stand } = openLine();
      stand(1);
      await end(new Error("no connection"));
      line.ring();
      expect(turns).toHaveLength(2);
      await end();
    });
  });
});
