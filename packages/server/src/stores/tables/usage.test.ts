import { expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import type { UsageQuery } from "../../store/index.js";
import { sql } from "../postgres/open.js";
import type { Runner } from "./runner.js";
import { usageStore } from "./usage.js";

const sumOf = (ownerNo: number): UsageQuery => ({
  kind: "endpoint",
  ownerNo,
  stretches: [{ bucket: 0, span: "month", from: 0, to: 1 }],
  byResource: true,
  limit: 10,
});

it("One owner's bills leave the database to others: few are added up at a time, and owners take turns", async () => {
  const asked: { ownerNo: unknown; answer: () => void }[] = [];
  const read = ({ parameters }: { parameters: readonly unknown[] }) =>
    new Promise<[]>((resolve) => asked.push({ ownerNo: parameters.at(-2), answer: () => resolve([]) }));
  const store = usageStore({ sql, read } as unknown as Runner);
  const most = limits.billReadsMax;
  const all = [...Array<number>(10).fill(1), 2].map((ownerNo) => store.sums(sumOf(ownerNo)));
  expect(asked.map(({ ownerNo }) => ownerNo)).toEqual(Array(most).fill(1));
  for (let at = 0; at < all.length; at++) {
    asked[at]?.answer();
    await new Promise(setImmediate);
    expect(asked.length - at - 1).toBeLessThanOrEqual(most);
  }
  await Promise.all(all);
  expect(asked.findIndex(({ ownerNo }) => ownerNo === 2)).toBeLessThan(2 + most);
});
