import { expect, it } from "vitest";
import { sharedPage } from "./shared-page.js";

it("A shared page is made one at a time, for all who asked before it was begun", async () => {
  const open: ((text: string) => void)[] = [];
  const page = sharedPage(() => new Promise((done) => open.push((text) => done({ contentType: "text/plain", text }))));
  const texts: string[] = [];
  const ask = () => page().then(({ bytes }) => void texts.push(bytes.toString()));
  const all = [ask(), ask()];
  await expect.poll(() => open.length).toBe(1);
  // these ask while it is made: what it says may be older than what they know
  all.push(ask(), ask());
  open[0]?.("first");
  await expect.poll(() => open.length).toBe(2);
  open[1]?.("second");
  await Promise.all(all);
  expect([texts, open.length]).toEqual([["first", "first", "second", "second"], 2]);
});

it("A shared page that fails is made again for the next", async () => {
  let count = 0;
  const page = sharedPage(async () => {
    if (++count === 1) throw new Error("no");
    return { contentType: "text/plain", text: "yes" };
  });
  await expect(page()).rejects.toThrow("no");
  expect((await page()).bytes.toString()).toBe("yes");
});
