import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import {
  goneAt,
  isFinal,
  type JobEvent,
  type JobStatus,
  mayHappen,
  retentionMs,
  settleLoss,
  times,
  transitions,
} from "./job.js";

const statuses: readonly JobStatus[] = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"];
const events = Object.keys(transitions) as JobEvent[];

/**
 * A second copy of the job table in docs/architecture.md: for each state, the possible events and the states that they
 * lead to.
 */
const table: Record<JobStatus, Partial<Record<JobEvent, JobStatus>>> = {
  IN_QUEUE: { take: "IN_PROGRESS", cancel: "CANCELLED" },
  IN_PROGRESS: {
    progress: "IN_PROGRESS",
    complete: "COMPLETED",
    fail: "FAILED",
    giveBack: "IN_QUEUE",
    timeOut: "TIMED_OUT",
    cancel: "CANCELLED",
  },
  COMPLETED: {},
  FAILED: { retry: "IN_QUEUE" },
  CANCELLED: {},
  TIMED_OUT: { retry: "IN_QUEUE" },
};

describe("The job table", () => {
  it.each(statuses.flatMap((status) => events.map((event) => [event, status] as const)))(
    "says whether %s may happen to a job that is %s",
    (event, status) => {
      const to = mayHappen(event, status) ? transitions[event].to : undefined;
      expect(to).toBe(table[status][event]);
    },
  );

  it.each(statuses)("calls %s final if and only if no event other than a retry leaves it", (status) => {
    const out = Object.keys(table[status]).filter((event) => event !== "retry");
    expect(isFinal(status)).toBe(out.length === 0);
  });

  it("allows nothing else, and only a retry changes a final state, in whatever order events come", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...events), { maxLength: 50 }), (tried) => {
        let status: JobStatus = "IN_QUEUE";
        for (const event of tried) {
          if (!mayHappen(event, status)) continue;
          const to: JobStatus = transitions[event].to;
          if (isFinal(status)) expect([event, to]).toEqual(["retry", "IN_QUEUE"]);
          status = to;
          expect(statuses).toContain(status);
        }
      }),
    );
  });
});

describe("The loss of a job", () => {
  it.each([
    { it: "gives it back after its first start", starts: 1, excused: 0, by: "giveBack" },
    { it: "gives it back after its second", starts: 2, excused: 0, by: "giveBack" },
    { it: "fails it after its third", starts: 3, excused: 0, by: "fail" },
    { it: "does not count an excused start", starts: 3, excused: 1, by: "giveBack" },
    { it: "fails it after three that count", starts: 5, excused: 2, by: "fail" },
  ])("$it", ({ starts, excused, by }) => {
    expect(settleLoss({ starts, excused }, "Its worker was lost").by).toBe(by);
  });

  it("counts as a start, and the job's failure says how often and why", () => {
    expect(settleLoss({ starts: 1, excused: 0 }, "Its worker was lost")).toEqual({ by: "giveBack", excused: false });
    expect(settleLoss({ starts: limits.startsMax, excused: 0 }, "Its worker was lost")).toEqual({
      by: "fail",
      error: `Its worker was lost (${limits.startsMax} starts in all).`,
    });
    expect(settleLoss({ starts: limits.startsMax, excused: 0 }, "Its worker was lost", "it fell asleep")).toEqual({
      by: "fail",
      error: `Its worker was lost (${limits.startsMax} starts in all). The last of them: it fell asleep`,
    });
  });
});

describe("A job's times", () => {
  it.each([
    { it: "count the wait so far", takenAt: undefined, finishedAt: undefined, delay: 900, execution: 0 },
    { it: "count the run so far", takenAt: 300, finishedAt: undefined, delay: 200, execution: 700 },
    { it: "do not change after the end", takenAt: 300, finishedAt: 800, delay: 200, execution: 500 },
    { it: "count a wait that was cancelled", takenAt: undefined, finishedAt: 400, delay: 300, execution: 0 },
    { it: "are never negative", takenAt: 50, finishedAt: 20, delay: 0, execution: 0 },
  ])("$it", ({ takenAt, finishedAt, delay, execution }) => {
    expect(times({ queuedAt: 100, takenAt, finishedAt }, 1_000)).toEqual({
      delayTime: delay,
      executionTime: execution,
    });
  });
});

describe("Retention", () => {
  it.each([
    { it: "of /run is 30 minutes", route: "run", wait: undefined, ms: 1_800_000 },
    { it: "of /run ignores the wait", route: "run", wait: 90_000, ms: 1_800_000 },
    { it: "of /runsync is a minute", route: "runsync", wait: undefined, ms: 60_000 },
    { it: "of /runsync is never less", route: "runsync", wait: 1_000, ms: 60_000 },
    { it: "of /runsync is as long as the wait", route: "runsync", wait: 120_000, ms: 120_000 },
    { it: "of /runsync is five minutes at most", route: "runsync", wait: 900_000, ms: 300_000 },
  ] as const)("$it", ({ route, wait, ms }) => {
    expect(retentionMs(route, wait)).toBe(ms);
  });

  it("never exceeds the ttl", () => {
    expect(goneAt({ ttlEndAt: 5_000, retentionMs: 1_000 }, 3_000)).toBe(4_000);
    expect(goneAt({ ttlEndAt: 3_500, retentionMs: 1_000 }, 3_000)).toBe(3_500);
  });
});
