import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fairPlaces, type Waiting } from "./fair-places.js";

const [ada, bob] = [1, 2];
const of = (ownerNo: number, ...nos: number[]): Waiting[] => nos.map((no) => ({ no, ownerNo, size: 1 }));
const order = (waiting: Waiting[], holds: [number, number][] = [], weights: Record<number, number> = {}) =>
  fairPlaces(waiting, new Map(holds), (ownerNo) => weights[ownerNo] ?? 1).map(({ no }) => no);

describe("Waiting workers", () => {
  it("of one user go in the order in which they came", () => {
    expect(order(of(ada, 3, 1, 2))).toEqual([1, 2, 3]);
  });

  it("of two users take turns, the older first", () => {
    expect(order([...of(ada, 1, 2, 3), ...of(bob, 4, 5)])).toEqual([1, 4, 2, 5, 3]);
  });

  it("of a user who holds less go first", () => {
    expect(order([...of(ada, 1, 2), ...of(bob, 3, 4)], [[ada, 2]])).toEqual([3, 4, 1, 2]);
  });

  it("take turns by the weights of their users", () => {
    expect(order([...of(ada, 1, 2, 3, 4), ...of(bob, 5, 6)], [], { [ada]: 3 })).toEqual([1, 5, 2, 3, 4, 6]);
  });

  it("count by what they take", () => {
    expect(order([{ no: 1, ownerNo: ada, size: 4 }, ...of(ada, 2), ...of(bob, 3, 4, 5, 6, 7)])).toEqual([
      1, 3, 4, 5, 6, 2, 7,
    ]);
  });

  it("are all in the order once, each user's in turn", () => {
    const worker = fc.record({ ownerNo: fc.nat(4), size: fc.integer({ min: 1, max: 8 }) });
    fc.assert(
      fc.property(fc.array(worker), (workers) => {
        const waiting = workers.map((each, no) => ({ ...each, no }));
        const found = fairPlaces(waiting, new Map(), (ownerNo) => ownerNo + 1);
        expect(found.map(({ no }) => no).toSorted((a, b) => a - b)).toEqual(waiting.map(({ no }) => no));
        for (const ownerNo of [0, 1, 2, 3, 4]) {
          const nos = found.filter((each) => each.ownerNo === ownerNo).map(({ no }) => no);
          expect(nos).toEqual(nos.toSorted((a, b) => a - b));
        }
      }),
    );
  });
});
