import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { hearPing, nothingHeard } from "./absence.js";

const now = 100_000;
const old = { id: "old", takenAt: now - limits.absentAfterMs };
const none: ReadonlySet<string> = new Set();

describe("A job that a ping leaves out", () => {
  it("is not lost by one ping", () => {
    expect(hearPing(nothingHeard, [old], none, now).lost).toEqual([]);
  });

  it("is lost by two pings in a row", () => {
    const { heard } = hearPing(nothingHeard, [old], none, now);
    expect(hearPing(heard, [old], none, now + limits.pingMs).lost).toEqual(["old"]);
  });

  it("is not lost when a ping between the two lists it", () => {
    const first = hearPing(nothingHeard, [old], none, now);
    const second = hearPing(first.heard, [old], new Set(["old"]), now + 4_000);
    expect(hearPing(second.heard, [old], none, now + 8_000).lost).toEqual([]);
  });

  it("is judged only after its first 5 s", () => {
    const young = { id: "young", takenAt: now - limits.absentAfterMs + 1 };
    const first = hearPing(nothingHeard, [young], none, now);
    expect([first.lost, first.heard.absent.size]).toEqual([[], 0]);
    const second = hearPing(first.heard, [young], none, now + 4_000);
    expect(second.lost).toEqual([]);
    expect(hearPing(second.heard, [young], none, now + 8_000).lost).toEqual(["young"]);
  });

  it("is judged separately, whatever other jobs are listed", () => {
    const other = { id: "other", takenAt: 0 };
    const first = hearPing(nothingHeard, [old, other], new Set(["other"]), now);
    expect(hearPing(first.heard, [old, other], new Set(["other"]), now + 4_000).lost).toEqual(["old"]);
  });

  it("is not judged by a ping that came before its present take", () => {
    const first = hearPing(nothingHeard, [old], none, now);
    const again = { id: "old", takenAt: now + 1_000 };
    expect(hearPing(first.heard, [again], none, again.takenAt + limits.absentAfterMs).lost).toEqual([]);
  });
});
