import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type PastJob, type Replayed, replay } from "./replay.js";
import { inputs } from "./scaling-fixture.js";

const facts = { slots: 1, startMs: 2_000 };
const settings = (more: Partial<ReturnType<typeof inputs>["settings"]> = {}) => inputs({ settings: more }).settings;

function replayed(jobs: readonly PastJob[], more: Parameters<typeof settings>[0] = {}, given = facts): Replayed {
  const steps = replay(jobs, settings(more), given);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

const at = (ms: number, runMs = 1_000): PastJob => ({ at: 1_000_000 + ms, runMs });

describe("A replay", () => {
  it("of no job is nothing", () => {
    expect(replayed([])).toEqual({ neverRan: 0, waitP95Ms: 0, workerMs: 0, starts: 0 });
  });

  it("starts a worker for a job, which runs, and stops when it has been idle", () => {
    // 2 s of starting, 1 s of work, 5 s of idling
    expect(replayed([at(0)])).toEqual({ neverRan: 0, waitP95Ms: 2_000, workerMs: 8_000, starts: 1 });
    expect(replayed([at(0)], { idleTimeout: 60 })).toEqual({
      neverRan: 0,
      waitP95Ms: 2_000,
      workerMs: 63_000,
      starts: 1,
    });
  });

  it("keeps a worker for a job that comes before it has been idle for long enough", () => {
    expect(replayed([at(0), at(7_000)]).starts).toBe(1);
    expect(replayed([at(0), at(9_000)]).starts).toBe(2);
    expect(replayed([at(0), at(9_000)], { idleTimeout: 10 }).starts).toBe(1);
  });

  it("starts more workers if jobs wait too long, up to workersMax", () => {
    const jobs = Array.from({ length: 10 }, () => at(0, 10_000));
    expect(replayed(jobs, { workersMax: 1 })).toMatchObject({ starts: 1, waitP95Ms: 2_000 + 9 * 10_000 });
    const three = replayed(jobs, { workersMax: 3 });
    expect(three.starts).toBe(3);
    expect(three.waitP95Ms).toBeLessThan(40_000);
  });

  it("lets a worker run several jobs at a time if it can", () => {
    const jobs = [at(0), at(0), at(0)];
    expect(replayed(jobs, { workersMax: 1 }, { slots: 3, startMs: 2_000 }).waitP95Ms).toBe(2_000);
  });

  it("counts the time of workers that never stop only until the last job is over", () => {
    expect(replayed([at(0)], { workersMin: 1 })).toEqual({ neverRan: 0, waitP95Ms: 2_000, workerMs: 3_000, starts: 1 });
  });

  it("tells how many jobs never ran", () => {
    expect(replayed([at(0), at(1_000)], { workersMax: 0 })).toMatchObject({ neverRan: 2, starts: 0, workerMs: 0 });
  });

  it("goes on after a job that took no time", () => {
    expect(replayed([at(0, 0), at(0, 5_000)], { workersMax: 1 }).workerMs).toBeGreaterThan(7_000);
  });

  it("ends, and waits less with more workers that are always there, whatever the jobs are", () => {
    const job = fc.record({ ms: fc.nat(600_000), runMs: fc.nat(60_000) });
    const scalerType = fc.constantFrom("QUEUE_DELAY" as const, "REQUEST_COUNT" as const);
    const some = fc.record({
      scalerType,
      scalerValue: fc.integer({ min: 1, max: 30 }),
      workersMax: fc.integer({ min: 1, max: 8 }),
    });
    fc.assert(
      fc.property(fc.array(job, { minLength: 1, maxLength: 40 }), some, (jobs, given) => {
        const past = jobs.map(({ ms, runMs }) => at(ms, runMs)).sort((a, b) => a.at - b.at);
        const one = replayed(past, given);
        expect(one.starts).toBeGreaterThan(0);
        expect(one.workerMs).toBeGreaterThanOrEqual(past.reduce((sum, { runMs }) => sum + runMs, 0));
        const ready = replayed(past, { ...given, workersMin: 40, workersMax: 40 });
        expect(ready.waitP95Ms).toBeLessThanOrEqual(facts.startMs);
      }),
      { numRuns: 200 },
    );
  });
});
