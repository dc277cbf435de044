import { expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { type LiveWorker, startAmong } from "../memory/live-workers.js";
import { startsOf } from "./share-state.js";

const starting = (no: number, endpointNo: number, more: Partial<LiveWorker> = {}) =>
  ({ row: { no, endpointNo }, doing: `pulls ${no}`, ...more }) as LiveWorker;

it("Of what a server does to start workers, each endpoint's comes first, and all of it is bounded", () => {
  const many = Array.from({ length: 2 * limits.startsToldMax }, (_, n) => starting(n, 1));
  const others = Array.from({ length: 50 }, (_, n) => starting(10_000 + n, 10 + n, { doing: "x".repeat(9_000) }));
  const told = startsOf([...many, starting(9_999, 2, { doing: undefined }), ...others]);
  expect(Object.keys(told)).toHaveLength(limits.startsToldMax);
  expect(others.every(({ row }) => told[row.no]?.doing.length === limits.startWordsMax)).toBe(true);
  expect(told).not.toHaveProperty("9999");
});

it("What one worker waits for counts for its endpoint only if no other gets on", () => {
  const full = starting(1, 1, { doing: "no room", fullSince: 5 });
  expect(startsOf([full])).toEqual({ 1: { doing: "no room", isFull: true } });
  expect(startAmong([full])).toEqual({ doing: "no room", isFull: true });
  expect(startAmong([full, starting(2, 1)])).toEqual({ doing: "pulls 2", isFull: false });
  const elsewhere = { doing: "pulls there" };
  expect(startAmong([full, starting(3, 1, { doing: undefined, startElsewhere: elsewhere })])).toBe(elsewhere);
  expect(startAmong([starting(4, 1, { doing: undefined })])).toBeUndefined();
});
