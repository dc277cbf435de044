import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crashPauseMs, desiredWorkers, plan } from "./scaling.js";
import { busy, type Case, idle, inputs, nothing, now, planned, seconds, starting, worker } from "./scaling-fixture.js";

describe("QUEUE_DELAY wants", () => {
  it.each<Case & { it: string; want: number }>([
    { it: "nothing while no job waits", want: 0 },
    { it: "a worker for the first job", waiting: 1, want: 1 },
    { it: "one worker for many jobs that just came", waiting: 50, want: 1 },
    { it: "no worker for lowPriority jobs", lowPriority: 5, waitedMs: 60_000, want: 0 },
    { it: "no more while no job has waited its time", waiting: 5, waitedMs: 3_999, workers: [busy(1)], want: 1 },
    { it: "one for each late job beyond the busy workers", waiting: 2, waitedMs: 4_000, workers: [busy(1)], want: 3 },
    {
      it: "no more than workersMax",
      waiting: 90,
      waitedMs: 60_000,
      workers: [busy(1)],
      want: 3,
    },
    {
      it: "as many as fit the slots",
      waiting: 9,
      waitedMs: 4_000,
      slots: 4,
      workers: [busy(1)],
      settings: { workersMax: 10 },
      want: 4,
    },
    {
      it: "workers that are starting to count already",
      waiting: 3,
      waitedMs: 4_000,
      workers: [busy(1), starting(2), starting(3)],
      settings: { workersMax: 10 },
      want: 4,
    },
    {
      it: "the workers that are starting, even if fewer are needed",
      waiting: 1,
      waitedMs: 4_000,
      workers: [starting(1), starting(2)],
      want: 2,
    },
    { it: "workersMin at least", settings: { workersMin: 2 }, want: 2 },
    {
      it: "workers that are leaving not to count",
      waiting: 1,
      workers: [worker(1, { state: "closing" }), worker(2, { state: "stopping" })],
      want: 1,
    },
    { it: "workers of another version not to count", waiting: 1, workers: [busy(1, { version: 0 })], want: 1 },
    { it: "none with workersMax 0", waiting: 5, waitedMs: 9_000, settings: { workersMax: 0 }, want: 0 },
  ])("$it", ({ want, ...each }) => {
    expect(desiredWorkers(inputs(each)).want).toBe(want);
  });

  it("another check once the oldest job has waited its time", () => {
    const desire = desiredWorkers(inputs({ waiting: 5, waitedMs: 1_500, workers: [busy(1)] }));
    expect(desire.lookAt).toBe(now + 2_500);
  });

  it("the example of its comment", () => {
    const settings = { workersMax: 10 };
    expect(desiredWorkers(inputs({ waiting: 3, waitedMs: 5_000, workers: [busy(1)], settings })).want).toBe(4);
  });
});

describe("REQUEST_COUNT wants", () => {
  const settings = { scalerType: "REQUEST_COUNT", workersMax: 10 } as const;
  it.each<Case & { it: string; want: number }>([
    { it: "nothing without jobs", want: 0 },
    { it: "one worker for up to scalerValue jobs", waiting: 4, want: 1 },
    { it: "one more for one more job", waiting: 5, want: 2 },
    { it: "waiting and running jobs together", waiting: 3, running: 6, want: 3 },
    { it: "no worker for lowPriority jobs that wait", lowPriority: 40, want: 0 },
    { it: "no more than workersMax", waiting: 400, want: 10 },
  ])("$it", ({ want, ...each }) => {
    expect(desiredWorkers(inputs({ ...each, settings })).want).toBe(want);
  });

  it("keeps an idle worker that the count still requires", () => {
    const workers = [idle(1, seconds(60)), idle(2, seconds(50))];
    expect(planned({ settings, running: 4, workers })).toEqual({ ...nothing, stop: [1] });
  });
});

describe("After failed starts", () => {
  it("the pause grows from 1 s to at most 5 min", () => {
    expect([0, 1, 2, 3, 9, 10, 50].map(crashPauseMs)).toEqual([0, 1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
  });

  it.each<Case & { it: string; start: number }>([
    { it: "nothing starts in the pause", waiting: 1, failedStarts: 2, failedAgoMs: 1_999, start: 0 },
    { it: "one worker is started after it", waiting: 1, failedStarts: 2, failedAgoMs: 2_000, start: 1 },
    {
      it: "one worker is started at a time, even if more are wanted",
      settings: { workersMin: 3 },
      failedStarts: 1,
      failedAgoMs: 9_000,
      start: 1,
    },
    {
      it: "no worker is started while another is starting",
      settings: { workersMin: 3 },
      failedStarts: 1,
      failedAgoMs: 9_000,
      workers: [starting(1)],
      start: 0,
    },
    {
      it: "all missing workers are started once one is healthy",
      settings: { workersMin: 3 },
      failedStarts: 1,
      failedAgoMs: 9_000,
      workers: [busy(1)],
      start: 2,
    },
  ])("$it", ({ start, ...each }) => {
    expect(planned(each)).toEqual({ ...nothing, start });
  });

  it("is due again at the pause's end if a worker is missing", () => {
    const each = plan(inputs({ waiting: 1, failedStarts: 3, failedAgoMs: 1_000 }));
    expect([each.lookAt, each.reason]).toEqual([now + 3_000, "the last 3 starts failed; pausing"]);
    expect(plan(inputs({ failedStarts: 3, failedAgoMs: 1_000 })).lookAt).toBeUndefined();
  });
});

describe("For any inputs", () => {
  const state = fc.constantFrom("starting", "idle", "running", "closing", "stopping");
  const anyWorker = fc.record({ state, idleForMs: fc.nat(20_000), version: fc.constantFrom(0, 1) });
  const anyCase = fc.record({
    waiting: fc.nat(20),
    lowPriority: fc.nat(5),
    waitedMs: fc.nat(10_000),
    slots: fc.integer({ min: 1, max: 4 }),
    scalerType: fc.constantFrom("QUEUE_DELAY" as const, "REQUEST_COUNT" as const),
    workersMin: fc.nat(3),
    more: fc.nat(5),
    workers: fc.array(anyWorker, { maxLength: 6 }),
    failedStarts: fc.nat(4),
    failedAgoMs: fc.nat(10_000),
  });

  it("a plan stays within workersMax, stops no busy worker, and is never due again in the past", () => {
    fc.assert(
      fc.property(anyCase, ({ scalerType, workersMin, more, workers, ...each }) => {
        const views = workers.map(({ state, idleForMs, version }, at) =>
          idle(at + 1, idleForMs, { state, version, held: state === "running" ? 1 : 0 }),
        );
        const settings = { scalerType, workersMin, workersMax: workersMin + more };
        const made = plan(inputs({ ...each, settings, workers: views }));
        expect(made.start).toBeGreaterThanOrEqual(0);
        if (made.start > 0) expect(made.start + views.length).toBeLessThanOrEqual(settings.workersMax);
        const of = (no: number) => views.find((view) => view.no === no)!;
        for (const no of made.stop) expect(of(no).held).toBe(0);
        for (const no of made.close) expect(of(no).held).toBe(1);
        expect(new Set([...made.stop, ...made.close]).size).toBe(made.stop.length + made.close.length);
        if (made.lookAt !== undefined) expect(made.lookAt).toBeGreaterThan(now);
      }),
    );
  });
});
