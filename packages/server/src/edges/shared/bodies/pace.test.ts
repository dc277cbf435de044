import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { discardPace, type Reading, readPace } from "./pace.js";

async function body(isGone = false) {
  const made = Object.assign(new Readable({ read() {} }), { socket: { destroyed: isGone } });
  await once(made.resume(), "resume");
  return made;
}
const read = (ownerNo: number, left: number, manner: Reading["manner"] = "freely"): Reading => ({
  ownerNo,
  left,
  manner,
});
const budget = limits.bodyBytesPerTurn;
const discarded = limits.discardedBytesPerTurn;

it("a body whose client has disconnected is skipped, and costs the others no turn", async () => {
  const live = await Promise.all(Array.from({ length: 3 }, () => body()));
  const gone = await Promise.all(Array.from({ length: 500 }, () => body(true)));
  for (const each of [...gone, ...live]) discardPace.count(each, discarded);
  expect([...gone, ...live].every((each) => each.isPaused())).toBe(true);
  await Promise.all(live.map((each) => once(each, "resume")));
  expect(gone.filter((each) => !each.isPaused())).toEqual([]);
});

it("a body is paused once a turn's budget is used up, and goes on in a later turn", async () => {
  const [one, other] = [await body(), await body()];
  discardPace.count(one, discarded - 1);
  expect(one.isPaused()).toBe(false);
  discardPace.count(other, 1);
  expect(other.isPaused()).toBe(true);
  await once(other, "resume");
});

/** The order in which bodies go on that all wait for the next turn. */
async function orderOf(...readings: Reading[]): Promise<number[]> {
  const order: number[] = [];
  const bodies = await Promise.all(readings.map(() => body()));
  const all = bodies.map((each, n) => once(each, "resume").then(() => order.push(n)));
  for (const [n, each] of bodies.entries()) readPace.count(each, budget, readings[n]);
  await Promise.all(all);
  return order;
}

it("of an owner's bodies the one nearest to its end goes on first, and of equal ones the one that waited longest", async () => {
  expect(await orderOf(read(1, 300), read(1, 100), read(1, Number.POSITIVE_INFINITY), read(1, 100))).toEqual([
    1, 3, 0, 2,
  ]);
});

it("owners take turns, however many bodies one of them sends", async () => {
  const many = Array.from({ length: 6 }, () => read(1, 10));
  const order = await orderOf(...many, read(2, 1_000), read(2, 1_000));
  expect(order.indexOf(6)).toBeLessThan(2);
  expect(order.indexOf(7)).toBeLessThan(4);
});

it("the bodies of a crowded owner go on one in a turn, those of others freely", async () => {
  const crowded = { ownerNo: 1, manner: "one by one" } as const;
  const order = await orderOf({ ...crowded, left: 2 }, { ...crowded, left: 1 }, read(2, 5), read(2, 6), read(2, 7));
  expect(order.indexOf(1)).toBeLessThan(order.indexOf(0));
  expect(order.indexOf(3)).toBeLessThan(order.indexOf(0));
});

it("a crowded owner's body goes on alone until others are given a turn, and no body while one is about to be stored", async () => {
  let manner: Reading["manner"] = "not now";
  const reading = {
    ownerNo: 1,
    left: 5,
    get manner() {
      return manner;
    },
  };
  const waiting = await body();
  readPace.count(waiting, 1, reading);
  expect(waiting.isPaused()).toBe(true);
  const other = await body();
  readPace.count(other, budget, read(2, 1));
  await once(other, "resume");
  expect(waiting.isPaused()).toBe(true);
  manner = "one by one";
  await once(waiting, "resume");
  readPace.count(waiting, 1, reading);
  expect(waiting.isPaused()).toBe(false);
});
