import { beforeEach, describe, expect, it } from "vitest";
import { WebhookBytes } from "./webhook-bytes.js";

let memory: WebhookBytes;
let nos = 0;
beforeEach(() => {
  memory = new WebhookBytes({ bytesMax: 100, smallBytesMax: 1 });
});

const body = (ownerNo: number, bytes: number) => ({ no: ++nos, ownerNo, bytes });
/** Lends memory to a body, which must get it at once. */
const lent = (ownerNo: number, bytes: number): (() => void) => {
  const back = memory.lend(body(ownerNo, bytes));
  if (!back) throw new Error(`nothing was lent to owner ${ownerNo}`);
  return back;
};
const waits = (one: ReturnType<typeof body>): boolean => memory.lend(one) === undefined;

describe("Memory for large bodies", () => {
  it("is bounded, and small bodies need none", () => {
    lent(1, 60);
    lent(2, 40);
    expect(waits(body(3, 2))).toBe(true);
    lent(1, 1);
  });

  it("is given to a body that exceeds the bound only while it is alone", () => {
    const back = lent(1, 500);
    const small = body(2, 2);
    expect(waits(small)).toBe(true);
    back();
    expect(waits(small)).toBe(false);
  });

  it("is never all given to one owner: some is left for another", () => {
    lent(1, 20);
    lent(1, 20);
    expect(waits(body(1, 40))).toBe(true);
    lent(2, 60);
  });

  it("is given to the bodies of one owner in turn, so that a large body also gets its turn", () => {
    const backs = [lent(1, 20), lent(1, 20)];
    const large = body(1, 90);
    expect(waits(large)).toBe(true);
    backs[0]!();
    expect(waits(body(1, 5))).toBe(true);
    backs[1]!();
    expect(waits(large)).toBe(false);
  });

  it("is given first to owners that have none, in the order of their requests", () => {
    const backs = [lent(1, 40), lent(2, 30)];
    const [third, fourth] = [body(3, 60), body(4, 50)];
    expect([waits(third), waits(fourth), waits(body(1, 5))]).toEqual([true, true, true]);
    backs[0]!();
    expect([waits(fourth), waits(third)]).toEqual([true, false]);
  });

  it("is not reserved for a body that is no longer due, or whose host has no slot", () => {
    const back = lent(1, 100);
    const [gone, blocked, last] = [body(2, 50), body(3, 50), body(4, 50)];
    expect([waits(gone), waits(blocked), waits(last)]).toEqual([true, true, true]);
    memory.endRound();
    back();
    expect([waits(blocked), waits(last)]).toEqual([true, true]);
    memory.endRound();
    memory.pass(blocked);
    expect(waits(last)).toBe(false);
  });
});
