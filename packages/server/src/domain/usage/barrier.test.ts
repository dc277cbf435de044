import { expect, test } from "vitest";
import type { Terms } from "../access/user.js";
import { barrier, isBarrier } from "./barrier.js";

const one = { workers: 1, gpus: 1, cost: 2_000_000_000 };
const cases: { it: string; terms: Terms; running?: typeof one; more?: typeof one; why: RegExp | undefined }[] = [
  { it: "nothing limits a user without terms", terms: {}, why: undefined },
  { it: "the last worker allowed may start", terms: { quotas: { workers: 2 } }, why: undefined },
  { it: "one worker more may not", terms: { quotas: { workers: 1 } }, why: /may run 1 workers at a time, and runs 1/ },
  { it: "none may with a quota of 0", terms: { quotas: { workers: 0 } }, why: /quotas\.workers/ },
  { it: "GPUs count each", terms: { quotas: { gpus: 2 } }, more: { ...one, gpus: 2 }, why: /may hold 2 GPUs/ },
  {
    it: "a quota of GPUs does not stop a worker without any",
    terms: { quotas: { gpus: 0 } },
    more: { ...one, gpus: 0 },
    why: undefined,
  },
  { it: "money may be spent up to the limit", terms: { spendLimit: 4_000_000_000 }, why: undefined },
  { it: "and not beyond", terms: { spendLimit: 3_999_999_999 }, why: /costs 2 an hour now, and one more would cost 2/ },
  { it: "what costs nothing is not limited", terms: { spendLimit: 0 }, more: { ...one, cost: 0 }, why: undefined },
];
test.each(cases)("$it", ({ terms, running = one, more = one, why }) => {
  const said = barrier(terms, running, more);
  if (!why) return expect(said).toBeUndefined();
  expect(said).toMatch(why);
  expect(isBarrier(said ?? "")).toBe(true);
});
