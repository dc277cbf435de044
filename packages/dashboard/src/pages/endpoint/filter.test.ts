import type { StatusBody } from "@millrace/api";
import { shortName } from "@millrace/api/words";
import { describe, expect, it } from "vitest";
import { filterOf, isShown, withStatus } from "./filter.js";

const job = (more: Partial<StatusBody> = {}): StatusBody => ({
  id: "01a2228a-u1",
  status: "FAILED",
  delayTime: 1,
  executionTime: 1,
  workerId: "4u75mz4hlldbaw",
  error: "KeyError: 'text'",
  ...more,
});

describe("A filter of requests", () => {
  it.each([
    ["status:failed", "FAILED"],
    ["status:FAILED", "FAILED"],
    ["status:timed-out", "TIMED_OUT"],
    ["status:TIMED_OUT", "TIMED_OUT"],
    ["status:run", "IN_PROGRESS"],
    ["status:nonsense", undefined],
    ["failed", undefined],
    ["", undefined],
  ])("reads the state of %j", (typed, status) => {
    expect(filterOf(typed).status).toBe(status);
  });

  it.each([
    ["error:\"KeyError: 'text'\"", true],
    ['error:"keyerror" worker:4u75', true],
    [`worker:${shortName("4u75mz4hlldbaw")}`, true],
    ["worker:nobody", false],
    ["01a2228a", true],
    ["01a2228a keyerror", true],
    ["01a2228a other", false],
    ['error:"unfinished', false],
    ["status:failed", true],
  ])("shows the job, or not: %s", (typed, isWanted) => {
    expect(isShown(job(), filterOf(typed))).toBe(isWanted);
  });

  it("says what is no state", () => {
    expect(filterOf("status:nonsense").unknownStatus).toBe("nonsense");
    expect(filterOf("status:failed").unknownStatus).toBeUndefined();
  });

  it.each([
    ["", "FAILED", "status:failed"],
    ["status:failed error:x", "TIMED_OUT", "status:timed-out error:x"],
    ["error:x status:failed", undefined, "error:x"],
  ] as const)("keeps the rest with another state: %j", (typed, status, wanted) => {
    expect(withStatus(typed, status)).toBe(wanted);
  });
});
