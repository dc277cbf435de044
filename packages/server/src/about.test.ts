import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readAbout } from "./about.js";

const root = join(import.meta.dirname, "../../..");

it("A clone knows the commit that it is at", () => {
  const commit = existsSync(join(root, ".git"))
    ? execFileSync("git", ["-C", root, "rev-parse", "HEAD"], { encoding: "utf8" }).slice(0, 9)
    : undefined;
  expect(readAbout(undefined)).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/), commit });
});

it("An image is told", () => {
  expect(readAbout("0123abcdef0123abcdef").commit).toBe("0123abcde");
});
