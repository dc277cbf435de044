import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { mutants } from "../../scripts/mutants/list.mjs";
import { root } from "../harness.js";

it.each(mutants)("the text that the mutant $name changes occurs exactly once", ({ patches }) => {
  for (const { file, find } of patches) {
    const text = readFileSync(join(root, "packages/server/src", file), "utf8");
    expect([file, text.split(find).length - 1]).toEqual([file, 1]);
  }
});
