import { expect, it } from "vitest";
import { Refusal } from "./errors.js";

it("A refusal has no stack, which most of the time of one would go into; other errors keep theirs", () => {
  const { stackTraceLimit } = Error;
  expect(new Refusal("NOT_FOUND", "There is none.").stack).not.toContain("\n");
  expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  expect(new Error("ours").stack).toMatch(/\n\s+at /);
});
