import { describe, expect, it } from "vitest";
import { limits } from "../limits.js";
import { HeldList } from "./held-list.js";

describe("a list of held jobs", () => {
  it("is read by another thread as it was written", () => {
    const written = new HeldList();
    const read = new HeldList(written.memory);
    for (const id of ["a", "job-é-2", "c"]) written.add(id);
    expect(read.ids()).toEqual(["a", "job-é-2", "c"]);
    written.delete("a");
    written.delete("unknown");
    expect(read.ids()).toEqual(["job-é-2", "c"]);
    written.add("longer-than-a");
    expect(read.ids().sort()).toEqual(["c", "job-é-2", "longer-than-a"]);
  });

  it("reports when an id does not fit, and has room again once other jobs are over", () => {
    const list = new HeldList();
    expect(list.add("x".repeat(limits.sharedIdMaxBytes + 1))).toBe(false);
    for (let n = 0; n < limits.jobsHeldMax; n += 1) expect(list.add(`job-${n}`)).toBe(true);
    expect(list.add("one too many")).toBe(false);
    list.delete("job-7");
    expect(list.add("one more")).toBe(true);
    expect(new Set(new HeldList(list.memory).ids()).size).toBe(limits.jobsHeldMax);
  });
});
