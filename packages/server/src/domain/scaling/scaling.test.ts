import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ScaleInputs, WorkerView } from "./scale-inputs.js";
import { crashPauseMs, desiredWorkers, type Plan, plan } from "./scaling.js";

const now = 1_000_000;
const seconds = (n: number) => n * 1_000;

/** A worker of the present version, idle for a moment unless `more` changes that. */
const worker = (no: number, more: Partial<WorkerView> = {}): WorkerView => ({
  no,
  state: "idle",
  held: 0,
  version: 1,
  idleSince: now,
  ...more,
});
const busy = (no: number, more: Partial<WorkerView> = {}) => worker(no, { state: "running", held: 1, ...more });
const starting = (no: number, more: Partial<WorkerView> = {}) => worker(no, { state: "starting", ...more });
const idle = (no: number, forMs: number, more: Partial<WorkerView> = {}) =>
  worker(no, { idleSince: now - forMs, ...more });

interface Case {
  readonly settings?: Partial<ScaleInputs["settings"]>;
  readonly waiting?: number;
  readonly lowPriority?: number;
  readonly running?: number;
  readonly waitedMs?: number;
  readonly workers?: readonly WorkerView[];
  readonly slots?: number;
  readonly failedStarts?: number;
  readonly failedAgoMs?: number;
  readonly fitsWithout?: ScaleInputs["fitsWithout"];
}

function inputs(each: Case): ScaleInputs {
  const { waiting = 0, lowPriority = 0, workers = [], waitedMs = 0, failedAgoMs } = each;
  return {
    settings: {
      type: "QB",
      flashBootType: "OFF",
      scalerType: "QUEUE_DELAY",
      scalerValue: 4,
      workersMin: 0,
      workersMax: 3,
      idleTimeout: 5,
      ...each.settings,
    },
    version: 1,
    fitsWithout: each.fitsWithout ?? (() => true),
    flashBootMs: 3_600_000,
    demand: {
      waiting: waiting + lowPriority,
      waitingNormal: waiting,
      running: each.running ?? workers.reduce((sum, { held }) => sum + held, 0),
      oldestAt: waiting > 0 ? now - waitedMs : undefined,
    },
    workers,
    slots: each.slots ?? 1,
    failedStarts: each.failedStarts ?? 0,
    failedAt: failedAgoMs === undefined ? undefined : now - failedAgoMs,
    now,
  };
}
const planned = (each: Case) => {
  const { start, stop, close } = plan(inputs(each));
  return { start, stop, close };
};
const nothing = { start: 0, stop: [], close: [] };

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

describe("A plan", () => {
  it.each<Case & { it: string; start?: number; stop?: number[]; close?: number[] }>([
    { it: "does nothing if there is nothing to do" },
    { it: "starts the first worker", waiting: 1, start: 1 },
    { it: "starts missing workers at once", waiting: 5, waitedMs: 5_000, workers: [busy(1)], start: 2 },
    { it: "keeps an idle worker in its time", workers: [idle(1, 4_999)] },
    { it: "stops an idle worker after its time", workers: [idle(1, 5_000)], stop: [1] },
    {
      it: "stops the longest idle first",
      settings: { workersMin: 2 },
      workers: [idle(1, 6_000), idle(2, 9_000), idle(3, 7_000)],
      stop: [2],
    },
    { it: "keeps workersMin idle workers", settings: { workersMin: 1 }, workers: [idle(1, 60_000)] },
    { it: "starts workersMin without any job", settings: { workersMin: 2 }, start: 2 },
    { it: "never stops a busy worker for scale-down", workers: [busy(1, { idleSince: 0 })] },
    { it: "never stops a starting worker for scale-down", workers: [starting(1, { idleSince: 0 })] },
    {
      it: "counts workers that have not ended towards workersMax",
      waiting: 1,
      settings: { workersMax: 1 },
      workers: [worker(1, { state: "stopping" })],
    },
    {
      it: "stops idle workers and closes busy ones when workersMax falls to 0",
      settings: { workersMax: 0 },
      workers: [busy(1), idle(2, 0), starting(3)],
      stop: [2, 3],
      close: [1],
    },
    {
      it: "stops idle workers first when workersMax falls",
      settings: { workersMax: 1 },
      workers: [busy(1), starting(2), idle(3, 10)],
      stop: [3, 2],
    },
    {
      it: "stops a closed worker once its last job is over",
      workers: [worker(1, { state: "closing" }), worker(2, { state: "closing", held: 1 })],
      stop: [1],
    },
    {
      it: "replaces workers of another version: idle ones at once, busy ones when new ones are up",
      workers: [busy(1, { version: 0 }), idle(2, 0, { version: 0 }), starting(3, { version: 0 })],
      stop: [3, 2],
    },
    {
      it: "keeps an old worker that jobs wait for until a new one is up",
      waiting: 1,
      waitedMs: 9_000,
      settings: { workersMax: 3 },
      workers: [busy(1, { version: 0 }), starting(2)],
      start: 1,
    },
    {
      it: "stops the old worker when a new one is up",
      settings: { workersMin: 1 },
      workers: [idle(1, 0, { version: 0 }), idle(2, 0)],
      stop: [1],
    },
    {
      it: "stops one old worker at a time if there is no room for a new one",
      settings: { workersMin: 2, workersMax: 2 },
      workers: [idle(1, 10, { version: 0 }), idle(2, 20, { version: 0 })],
      stop: [2],
    },
    {
      it: "stops no other while the new worker takes up that place",
      settings: { workersMin: 2, workersMax: 2 },
      workers: [idle(1, 10, { version: 0 }), worker(2, { state: "stopping", version: 0 })],
    },
    {
      it: "stops no worker to make room after a failed start of the new version",
      settings: { workersMin: 2, workersMax: 2 },
      workers: [idle(1, 10, { version: 0 }), idle(2, 20, { version: 0 })],
      failedStarts: 1,
      failedAgoMs: 10,
    },
    {
      it: "keeps a busy old worker even if nothing waits, and starts its successor",
      workers: [busy(1, { version: 0 })],
      start: 1,
    },
    {
      it: "closes the busy old worker when the new one is up",
      workers: [busy(1, { version: 0 }), idle(2, 0)],
      close: [1],
    },
    {
      it: "makes room for a new worker that waits for resources of an old one",
      settings: { workersMin: 1 },
      workers: [idle(1, 0, { version: 0 }), worker(2, { state: "throttled" })],
      fitsWithout: (nos) => nos.includes(1),
      stop: [1],
    },
    {
      it: "stops the old worker whose resources the new one waits for",
      settings: { workersMin: 2 },
      workers: [idle(1, 20, { version: 0 }), idle(2, 10, { version: 0 }), worker(3, { state: "throttled" })],
      fitsWithout: (nos) => nos.includes(2),
      stop: [2],
    },
    {
      it: "stops one of two old workers that each hold a part of what a new one waits for",
      settings: { workersMin: 2 },
      workers: [idle(1, 20, { version: 0 }), idle(2, 10, { version: 0 }), worker(3, { state: "throttled" })],
      fitsWithout: (nos) => nos.length === 2,
      stop: [1],
    },
    {
      it: "keeps old workers whose end would not help the waiting new one",
      settings: { workersMin: 2 },
      workers: [idle(1, 20, { version: 0 }), idle(2, 10, { version: 0 }), worker(3, { state: "throttled" })],
      fitsWithout: () => false,
    },
    {
      it: "keeps an idle old worker that is not needed if a new one would find no place",
      workers: [idle(1, 4_999, { version: 0 })],
      fitsWithout: () => false,
    },
    {
      it: "stops the idle old worker when its idle time is over, and does not pause it",
      settings: { flashBootType: "FLASHBOOT" },
      workers: [idle(1, 5_000, { version: 0 })],
      fitsWithout: () => false,
      stop: [1],
    },
    {
      it: "stops the idle old worker at once if workersMax is 0",
      settings: { workersMax: 0 },
      workers: [idle(1, 10, { version: 0 })],
      fitsWithout: () => false,
      stop: [1],
    },
    {
      it: "keeps the only worker that workersMax allows if a new one would find no place",
      settings: { workersMin: 1, workersMax: 1 },
      workers: [idle(1, 20, { version: 0 })],
      fitsWithout: () => false,
    },
    {
      it: "keeps old workers if a new one finds a place beside them",
      settings: { workersMin: 1 },
      workers: [idle(1, 20, { version: 0 }), worker(2, { state: "throttled" })],
    },
    {
      it: "keeps an old worker beyond its idle time while it is needed",
      settings: { workersMin: 1 },
      workers: [idle(1, 60_000, { version: 0 }), starting(2)],
    },
    {
      it: "stops a worker that waits for a place and is no longer needed",
      workers: [worker(1, { state: "throttled" })],
      stop: [1],
    },
    {
      it: "requests no second worker while one waits for a place",
      waiting: 1,
      workers: [worker(1, { state: "throttled" })],
    },
    {
      it: "does not stop an idle worker while a job waits that it can take",
      waiting: 1,
      workers: [idle(1, 60_000)],
    },
  ])("$it", ({ start = 0, stop = [], close = [], ...each }) => {
    expect(planned(each)).toEqual({ start, stop, close });
  });

  it("is due again when the next idle worker's time is over", () => {
    expect(plan(inputs({ workers: [idle(1, 2_000), idle(2, 3_000)] })).lookAt).toBe(now + 2_000);
  });

  it("needs no second check if time alone changes nothing", () => {
    expect(plan(inputs({ workers: [busy(1)] })).lookAt).toBeUndefined();
    expect(plan(inputs({ settings: { workersMin: 1 }, workers: [idle(1, 60_000)] })).lookAt).toBeUndefined();
  });

  it("gives its outcome and the reason", () => {
    expect(plan(inputs({ waiting: 1 }))).toMatchObject({
      outcome: "start 1",
      reason: "a job waits and there is no worker",
    });
    expect(plan(inputs({ workers: [idle(1, 5_000)] }))).toMatchObject({ outcome: "stop 1", reason: "idle for 5 s" });
    expect(plan(inputs({ workers: [busy(1)] }))).toMatchObject({ outcome: "keep 1" });
    expect(plan(inputs({ settings: { workersMax: 0 }, workers: [busy(1)] }))).toMatchObject({
      outcome: "close 1",
      reason: "workersMax is 0",
    });
  });
});

describe("With FlashBoot", () => {
  const flash = { flashBootType: "FLASHBOOT" } as const;
  const paused = (no: number, forMs: number, more: Partial<WorkerView> = {}) =>
    worker(no, { state: "paused", idleSince: now - forMs, ...more });

  it.each<Case & { it: string } & Partial<Pick<Plan, "pause" | "resume" | "stop" | "close" | "start">>>([
    { it: "an idle worker is paused after its time", workers: [idle(1, 5_000)], pause: [1] },
    { it: "an idle worker is not paused before its time", workers: [idle(1, 4_999)] },
    { it: "an unfreezable worker is stopped", workers: [{ ...idle(1, 5_000), isUnfreezable: true }], stop: [1] },
    { it: "a paused worker resumes for the first job", waiting: 1, workers: [paused(1, 60_000)], resume: [1] },
    {
      it: "the worker that was paused last resumes first",
      waiting: 1,
      workers: [paused(1, 60_000), paused(2, 50_000)],
      resume: [2],
    },
    {
      it: "workers needed beyond the paused ones are started",
      settings: { workersMin: 3 },
      workers: [paused(1, 60_000)],
      resume: [1],
      start: 2,
    },
    { it: "a paused worker that holds a job resumes", workers: [paused(1, 10, { held: 1 })], resume: [1] },
    {
      it: "a paused worker that holds a job runs it first, even if paused for too long",
      workers: [paused(1, 3_600_000, { held: 1 })],
      resume: [1],
    },
    { it: "a paused worker of an older version is stopped", workers: [paused(1, 10, { version: 0 })], stop: [1] },
    { it: "a worker that was paused for too long is stopped", workers: [paused(1, 3_600_000)], stop: [1] },
    {
      it: "paused workers beyond workersMax are stopped, the longest paused first",
      settings: { workersMax: 2 },
      workers: [busy(1), paused(2, 10), paused(3, 20)],
      stop: [3],
    },
    {
      it: "all paused workers are stopped if FlashBoot is turned off",
      settings: { flashBootType: "OFF" },
      workers: [paused(1, 10)],
      stop: [1],
    },
    { it: "a load-balancing worker is stopped", settings: { type: "LB" }, workers: [idle(1, 9_000)], stop: [1] },
  ])("$it", ({ pause = [], resume = [], stop = [], close = [], start = 0, settings, ...each }) => {
    const made = plan(inputs({ ...each, settings: { ...flash, ...settings } }));
    expect(made).toMatchObject({ pause, resume, stop, close, start });
  });

  it("is due again when a paused worker's time is over", () => {
    expect(plan(inputs({ settings: flash, workers: [paused(1, 1_000)] })).lookAt).toBe(now + 3_599_000);
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
