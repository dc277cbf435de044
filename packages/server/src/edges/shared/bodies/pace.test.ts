import { once } from "node:events";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { limits } from "../../../limits/index.js";
import { discardPace } from "./pace.js";

async function body(isGone = false) {
  const made = Object.assign(new Readable({ read() {} }), { socket: { destroyed: isGone } });
  await once(made.resume(), "resume");
  return made;
}

it("a body whose client has disconnected is skipped, and costs the others no turn", async () => {
  const live = await Promise.all(Array.from({ length: 3 }, () => body()));
  const gone = await Promise.all(Array.from({ length: 500 }, () => body(true)));
  for (const each of [...gone, ...live]) discardPace.count(each, limits.discardedBytesPerTurn);
  expect([...gone, ...live].every((each) => each.isPaused())).toBe(true);
  await Promise.all(live.map((each) => once(each, "resume")));
  expect(gone.filter((each) => !each.isPaused())).toEqual([]);
});

it("a body is paused once a turn's budget is used up, and goes on in a later turn", async () => {
  const [one, other] = [await body(), await body()];
  discardPace.count(one, limits.discardedBytesPerTurn - 1);
  expect(one.isPaused()).toBe(false);
  discardPace.count(other, 1);
  expect(other.isPaused()).toBe(true);
  await once(other, "resume");
});
