import { beforeEach, describe, expect, it } from "vitest";
import { systemIds } from "../../ids.js";
import { limits } from "../../limits/index.js";
import { MovableClock } from "../../testing/movable-clock-fixture.js";
import { localVault } from "../../vaults/local.js";
import type { Parts } from "../needs.js";
import { type Marked, Marks } from "./server-marks.js";

const request: Marked = { target: "abcdefghijklmn", method: "POST", url: "/lb/abcdefghijklmn/a?b=c" };
const sealKey = Buffer.alloc(32, "k");
const [here, there] = [1, 2];
let clock: MovableClock;
const marks = (serverNo: number, key = sealKey) =>
  new Marks({ vault: localVault(key), ids: systemIds, clock, here: { server: { no: serverNo } } as Parts["here"] });
let ours: Marks;
let theirs: Marks;
beforeEach(() => {
  clock = new MovableClock();
  ours = marks(here);
  theirs = marks(there);
});

describe("A mark", () => {
  it("lets one request in, once", () => {
    const mark = ours.make(there, request);
    expect([theirs.accept(mark, request), theirs.accept(mark, request)]).toEqual([true, false]);
    expect(theirs.accept(ours.make(there, request), request)).toBe(true);
  });

  it.each<[string, Partial<Marked>]>([
    ["endpoint", { target: "nmlkjihgfedcba" }],
    ["method", { method: "GET" }],
    ["address", { url: "/lb/abcdefghijklmn/a?b=d" }],
  ])("is valid for no other %s", (_what, change) => {
    expect(theirs.accept(ours.make(there, request), { ...request, ...change })).toBe(false);
  });

  it("is not valid at another server, nor at the server that made it", () => {
    expect(marks(3).accept(ours.make(there, request), request)).toBe(false);
    expect(ours.accept(ours.make(there, request), request)).toBe(false);
  });

  it("cannot be made without the seal key", () => {
    const forger = marks(here, Buffer.alloc(32, "f"));
    expect(theirs.accept(forger.make(there, request), request)).toBe(false);
  });

  it("is invalid if any of its characters is changed", () => {
    const mark = ours.make(there, request);
    for (let at = 0; at < mark.length; at++) {
      const changed = mark.slice(0, at) + (mark[at] === "1" ? "2" : "1") + mark.slice(at + 1);
      expect(theirs.accept(changed, request)).toBe(false);
    }
    for (const text of ["", "x", "...", `${mark}, ${mark}`]) expect(theirs.accept(text, request)).toBe(false);
    expect(theirs.accept(mark, request)).toBe(true);
  });

  it("is valid for a short time", async () => {
    const [early, late] = [ours.make(there, request), ours.make(there, request)];
    await clock.advance(limits.gateMarkMs, async () => {});
    expect(theirs.accept(early, request)).toBe(true);
    await clock.advance(1, async () => {});
    expect(theirs.accept(late, request)).toBe(false);
  });

  it("is not accepted a second time while it is valid, whatever the other server's clock shows", async () => {
    const mark = ours.make(there, request);
    await clock.advance(-limits.gateMarkMs, async () => {}); // the other server's is behind
    expect(theirs.accept(mark, request)).toBe(true);
    for (let passed = 0; passed < 4 * limits.gateMarkMs; passed += 1_000) {
      await clock.advance(1_000, async () => {});
      expect(theirs.accept(mark, request)).toBe(false);
      expect(theirs.accept(ours.make(there, request), request)).toBe(true);
    }
  });
});
