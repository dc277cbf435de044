import { expect, it } from "vitest";
import { describeCommands } from "./program.js";

/** The calls under the heading of a help's examples. */
const examplesIn = (help: string): string[] =>
  /^Examples?:\n((?: {2}.+\n)+)/m.exec(help)?.[1]?.trimEnd().split("\n") ?? [];

it.each(describeCommands())("The help of $name shows from one to five calls of it", ({ name, help }) => {
  const shown = examplesIn(help);
  expect(shown.length).toBeGreaterThan(0);
  expect(shown.length).toBeLessThan(6);
  for (const each of shown) expect(each).toMatch(new RegExp(`(^|[ (])${name}( |\\)|$)`));
});
