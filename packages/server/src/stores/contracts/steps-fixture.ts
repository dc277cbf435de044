import fc from "fast-check";
import type { Change } from "../../domain/jobs/job.js";

/** One step of a history. */
export type Step =
  | { do: "submit"; lowPriority: boolean; ttlMs: number; retentionMs: number }
  | { do: "take"; asks: readonly { worker: number; count: number }[] }
  | { do: "word"; pick: number; worker: number; fails: boolean }
  | { do: "change"; pick: number; by: Change["by"]; excused: boolean }
  | { do: "read"; pick: number }
  | { do: "stale"; by: Change["by"] }
  | { do: "confirm"; pick: number; worker: number }
  | { do: "purge"; limit: number }
  | { do: "sweep"; limit: number }
  | { do: "pass"; ms: number };

const pick = fc.nat(1_000);
const worker = fc.nat(2);
const by = fc.constantFrom<Change["by"][]>("giveBack", "fail", "timeOut", "cancel", "retry");
const is = <K extends Step["do"]>(name: K) => fc.constant(name);
/** Any step. */
export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: is("submit"),
      lowPriority: fc.boolean(),
      ttlMs: fc.constantFrom(10_000, 60_000, 86_400_000),
      retentionMs: fc.constantFrom(5_000, 60_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: is("take"),
      asks: fc.uniqueArray(fc.record({ worker, count: fc.integer({ min: 1, max: 3 }) }), {
        selector: (ask) => ask.worker,
        minLength: 1,
      }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: is("word"), pick, worker, fails: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ do: is("change"), pick, by, excused: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: is("read"), pick }) },
  { weight: 2, arbitrary: fc.record({ do: is("stale"), by }) },
  { weight: 1, arbitrary: fc.record({ do: is("confirm"), pick, worker }) },
  { weight: 1, arbitrary: fc.record({ do: is("purge"), limit: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ do: is("sweep"), limit: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 3, arbitrary: fc.record({ do: is("pass"), ms: fc.constantFrom(1, 2_000, 8_000, 40_000) }) },
);
