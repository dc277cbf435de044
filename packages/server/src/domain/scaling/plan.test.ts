import { describe, expect, it } from "vitest";
import type { WorkerView } from "./scale-inputs.js";
import { type Plan, plan } from "./scaling.js";
import { busy, type Case, idle, inputs, now, planned, starting, worker } from "./scaling-fixture.js";

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
    { it: "starts as many as its user may", settings: { workersMin: 3 }, mayStart: 2, start: 2 },
    { it: "starts none if its user may start none", settings: { workersMin: 3 }, mayStart: 0 },
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
      it: "stops one that still runs a stopped job before one that is free",
      waiting: 1,
      settings: { workersMax: 1 },
      workers: [idle(1, 10), worker(2, { state: "running" })],
      stop: [2],
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
    const unfreezable = { ...idle(1, 5_000), isUnfreezable: true };
    expect(plan(inputs({ workers: [unfreezable], settings: { flashBootType: "FLASHBOOT" } }))).toMatchObject({
      outcome: "stop 1",
      reason: "idle for 5 s; its host cannot freeze it",
    });
    expect(plan(inputs({ workers: [busy(1)] }))).toMatchObject({ outcome: "keep 1" });
    expect(plan(inputs({ settings: { workersMin: 2 }, workers: [starting(1)], mayStart: 0 }))).toMatchObject({
      outcome: "keep 1",
      reason: "workersMin is 2; too many of this user's workers are not up yet",
      lookAt: now + 5_000,
    });
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
