import Type, { type Static } from "typebox";
import { time } from "./fields.js";

const span = (description: string) => Type.Integer({ minimum: 0, description });
const count = (description: string) => Type.Integer({ minimum: 0, description });
const Quantiles = Type.Optional(Type.Object({ p50: Type.Integer(), p90: Type.Integer(), p99: Type.Integer() }));

/** How long jobs that are still kept waited and ran, in milliseconds. */
export const Timings = Type.Object({
  jobs: count("How many jobs these times are of: the newest that a worker has taken."),
  waitMs: Quantiles,
  executionMs: Quantiles,
  buckets: Type.Array(
    Type.Object({
      at: time("When it begins."),
      jobs: count("Jobs submitted in it."),
      failed: count("How many of them failed or ran too long."),
      waitMs: span("Their median wait, in milliseconds."),
      executionMs: Type.Optional(span("The median execution time of the finished ones, in milliseconds.")),
    }),
    {
      description:
        "The time from the oldest to the newest of these jobs in equal parts; those without jobs are left out.",
    },
  ),
});
export type Timings = Static<typeof Timings>;

const Replayed = Type.Object({
  neverRan: count("Jobs that no worker took in the end, as with workersMax 0."),
  waitP95Ms: span("95 of 100 jobs waited no longer, in milliseconds."),
  workerMs: span("How long workers existed, added up, in milliseconds."),
  starts: count("Workers started."),
});

/** Jobs that are still kept, submitted again at the same times to the same scaler. */
export const ScalingReplay = Type.Object({
  jobs: count("How many jobs were replayed."),
  present: Replayed,
  changed: Replayed,
});
export type ScalingReplay = Static<typeof ScalingReplay>;
