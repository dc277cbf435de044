import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { limits } from "./index.js";

it("Every limit has a name of its own, so that none takes another's place", async () => {
  const subjects = readdirSync(import.meta.dirname).filter(
    (name) => name.endsWith(".ts") && !/^(index|units|locations)\.ts$|\.test\.ts$/.test(name),
  );
  const named = await Promise.all(
    subjects.map(async (name) =>
      Object.values(await import(join(import.meta.dirname, name))).flatMap((each) => Object.keys(each as object)),
    ),
  );
  expect(named.flat().sort()).toEqual(Object.keys(limits).sort());
});
