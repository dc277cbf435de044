import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { MovableClock } from "../../../testing/movable-clock-fixture.js";
import { sharedPage } from "./shared-page.js";

it("A shared page is made one at a time, for all requests from before it began, with a pause in between", async () => {
  const clock = new MovableClock(0);
  const open: ((text: string) => void)[] = [];
  const make = () =>
    new Promise<{ contentType: string; text: string }>((done) => {
      open.push((text) => done({ contentType: "text/plain", text }));
    });
  const page = sharedPage({ clock }, make);
  const texts: string[] = [];
  const ask = () => page().then(({ bytes }) => void texts.push(bytes.toString()));
  const all = [ask(), ask()];
  await expect.poll(() => open.length).toBe(1);
  // These requests come while it is made: its content may be older than their facts.
  all.push(ask(), ask());
  await clock.advance(10, turn);
  open[0]?.("first");
  await clock.advance(49, turn);
  await turn();
  expect([texts, open.length]).toEqual([["first", "first"], 1]);
  await clock.advance(1, turn);
  await expect.poll(() => open.length).toBe(2);
  open[1]?.("second");
  await Promise.all(all);
  expect([texts, open.length]).toEqual([["first", "first", "second", "second"], 2]);
});

it("A shared page that fails is made again for the next request", async () => {
  let count = 0;
  const clock = new MovableClock(0);
  const page = sharedPage({ clock }, async () => {
    if (++count === 1) throw new Error("no");
    return { contentType: "text/plain", text: "yes" };
  });
  await expect(page()).rejects.toThrow("no");
  await clock.advance(0, turn);
  expect((await page()).bytes.toString()).toBe("yes");
});
