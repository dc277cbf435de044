import { expect, it } from "vitest";
import { FairLine } from "./fair-line.js";

it("Work is done one at a time, and owners take turns", async () => {
  const line = new FairLine();
  const begun: string[] = [];
  let running = 0;
  const work = (name: string) => async () => {
    begun.push(name);
    expect(++running).toBe(1);
    await Promise.resolve();
    running--;
    return name;
  };
  const done = [
    line.do(1, work("a1")),
    line.do(1, work("a2")),
    line.do(1, work("a3")),
    line.do(2, work("b1")),
    line.do(3, work("c1")),
    line.do(2, work("b2")),
  ];
  expect([line.waitingOf(1), line.waitingOf(2), line.waitingOf(4)]).toEqual([2, 2, 0]);
  expect(await Promise.all(done)).toEqual(["a1", "a2", "a3", "b1", "c1", "b2"]);
  expect(begun).toEqual(["a1", "a2", "b1", "c1", "a3", "b2"]);
  expect(line.waitingOf(1)).toBe(0);
});

it("Work that fails does not stop what comes after it", async () => {
  const line = new FairLine();
  const failed = line.do(1, async () => {
    throw new Error("no");
  });
  const after = line.do(1, async () => "done");
  await expect(failed).rejects.toThrow("no");
  expect(await after).toBe("done");
  expect(await line.do(2, async () => "later")).toBe("later");
});

it("Work is done several at a time", async () => {
  const line = new FairLine(2);
  let running = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
  };
  for (let round = 0; round < 2; round++) await Promise.all(Array.from({ length: 7 }, (_, n) => line.do(n % 2, work)));
  expect(most).toBe(2);
});
