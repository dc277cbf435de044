import { expect, it } from "vitest";
import { type Clock, PlainSignal } from "../clock.js";
import { type Share, Shares } from "./shares.js";

/** A clock whose sleeps end when the test decides. */
function stillClock(): { clock: Clock; wakeAll: () => void } {
  const sleeping: (() => void)[] = [];
  const clock = {
    now: () => 0,
    wallNow: () => 0,
    sleep: (_ms: number, signal?: { addEventListener(type: "abort", listener: () => void): void }) =>
      new Promise<void>((resolve) => {
        sleeping.push(resolve);
        signal?.addEventListener("abort", resolve);
      }),
    after: () => {},
    onGap: () => {},
    stop: () => {},
  };
  return { clock, wakeAll: () => sleeping.splice(0).forEach((wake) => void wake()) };
}

function opened(bytesMax = 100, ownerBytesMax = 60) {
  const { clock, wakeAll } = stillClock();
  const shares = new Shares({ clock, bytesMax, ownerBytesMax, waitMs: 1_000 });
  const here = new PlainSignal();
  /** Asks for memory, and records the outcome. */
  const ask = (ownerNo: number, bytes: number, gone = here) => {
    const asked: { share: Share | undefined; isOver: boolean } = { share: undefined, isOver: false };
    void shares.ask(ownerNo, bytes, gone).then((share) => Object.assign(asked, { share, isOver: true }));
    return asked;
  };
  return { shares, ask, wakeAll };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

it("lends up to the bound, and lends returned memory again", async () => {
  const { shares, ask } = opened();
  const [first, second, third] = [ask(1, 60), ask(2, 40), ask(3, 10)];
  await settled();
  expect([first.isOver, second.isOver, third.isOver]).toEqual([true, true, false]);
  expect(shares.heldBytes).toBe(100);
  expect(shares.isWanted).toBe(true);
  second.share?.release();
  second.share?.release();
  await settled();
  expect(third.share).toBeDefined();
  expect(shares.heldBytes).toBe(70);
  expect(shares.isWanted).toBe(false);
});

it("reserves room that one owner cannot take", async () => {
  const { ask } = opened();
  const own = [ask(1, 30), ask(1, 30), ask(1, 30)];
  await settled();
  expect(own.map(({ isOver }) => isOver)).toEqual([true, true, false]);
  const other = ask(2, 40);
  await settled();
  expect(other.share).toBeDefined();
});

it("serves the owners in turn, however many requests one of them has waiting", async () => {
  const { ask } = opened(60, 60);
  const first = ask(1, 60);
  const many = Array.from({ length: 50 }, () => ask(1, 60));
  const other = ask(2, 60);
  await settled();
  first.share?.release();
  await settled();
  many[0]?.share?.release();
  await settled();
  expect(other.share).toBeDefined();
  expect(many.filter(({ isOver }) => isOver)).toHaveLength(1);
});

it("lets no smaller request overtake a request that waits for room", async () => {
  const { ask } = opened(100, 100);
  const first = ask(1, 60);
  const large = ask(2, 60);
  const small = ask(3, 10);
  await settled();
  expect([large.isOver, small.isOver]).toEqual([false, false]);
  first.share?.release();
  await settled();
  expect([large.isOver, small.isOver]).toEqual([true, true]);
});

it("lends more than its bound to a request that is alone", async () => {
  const { ask } = opened();
  const huge = ask(1, 1_000);
  const next = ask(2, 1);
  await settled();
  expect([huge.isOver, next.isOver]).toEqual([true, false]);
  huge.share?.keep(10);
  await settled();
  expect(next.share).toBeDefined();
});

it("refuses if no room became free in time, and later requests continue", async () => {
  const { shares, ask, wakeAll } = opened(100, 100);
  ask(1, 90);
  const large = ask(2, 50);
  await settled();
  wakeAll();
  const small = ask(3, 10);
  await settled();
  expect(large).toEqual({ share: undefined, isOver: true });
  expect(small.share).toBeDefined();
  expect(shares.heldBytes).toBe(100);
});

it("admits the next in a line when the first one leaves it", async () => {
  const { ask } = opened(100, 100);
  ask(1, 90);
  const gone = new PlainSignal();
  const large = ask(2, 50, gone);
  const small = ask(2, 10);
  await settled();
  expect(small.isOver).toBe(false);
  gone.abort();
  await settled();
  expect([large.share, small.share === undefined]).toEqual([undefined, false]);
});

it("forgets a caller that disconnects while it waits", async () => {
  const { shares, ask } = opened(100, 100);
  const first = ask(1, 100);
  const gone = new PlainSignal();
  const leaving = ask(2, 50, gone);
  await settled();
  gone.abort();
  await settled();
  expect(leaving).toEqual({ share: undefined, isOver: true });
  first.share?.release();
  expect(shares.heldBytes).toBe(0);
  expect(shares.isWanted).toBe(false);
  expect(await shares.ask(2, 1, gone)).toBeUndefined();
});
