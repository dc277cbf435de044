import { describe, expect, it } from "vitest";
import { endpointDefaults } from "../endpoints/endpoint.js";
import type { WorkerState } from "../workers/worker.js";
import { type WaitFacts, waitReason } from "./wait-reason.js";

interface Case {
  readonly it: string;
  readonly reason: string;
  readonly states?: readonly WorkerState[];
  readonly workersMax?: number;
  readonly lowPriority?: boolean;
  readonly failedStarts?: number;
  readonly obstacle?: WaitFacts["obstacle"];
}

const facts = ({ states = [], workersMax = 3, lowPriority = false, failedStarts = 0, obstacle }: Case): WaitFacts => ({
  lowPriority,
  endpoint: {
    settings: { ...endpointDefaults, name: "e", templateId: "t", workersMax },
    failedStarts,
    verdict: failedStarts > 0 ? "exit code 3: no such module" : undefined,
  },
  states,
  pause: { leftMs: 3_500, isWatched: false },
  obstacle,
});
const noGpu = { reason: "no_capacity", detail: "No GPU of the types it asks for is free here." } as const;

describe("A job waits", () => {
  it.each<Case>([
    { it: "since there is no worker yet", reason: "no_worker" },
    { it: "for a worker that starts", states: ["starting"], reason: "starting" },
    { it: "for busy workers", states: ["running"], reason: "workers_busy" },
    { it: "for busy workers, while others start", states: ["running", "starting"], reason: "workers_busy" },
    { it: "a moment, while a worker is free", states: ["running", "idle"], reason: "workers_busy" },
    { it: "since all allowed workers are busy", states: ["running"], workersMax: 1, reason: "workers_max_reached" },
    { it: "for workers that are still stopping", states: ["stopping"], workersMax: 1, reason: "workers_max_reached" },
    { it: "since no worker may start", states: ["running"], workersMax: 0, reason: "workers_max_zero" },
    { it: "since it may start no worker", lowPriority: true, reason: "low_priority" },
    { it: "for a worker that other jobs started", lowPriority: true, states: ["starting"], reason: "starting" },
    { it: "since the last start failed", failedStarts: 1, reason: "start_failed" },
    { it: "since starts keep failing", failedStarts: 3, states: ["starting"], reason: "crash_looping" },
    { it: "for a healthy worker even if another failed", failedStarts: 3, states: ["running"], reason: "workers_busy" },
    { it: "since the host cannot run its worker", obstacle: noGpu, reason: "no_capacity" },
    { it: "since the host is elsewhere", obstacle: { reason: "location", detail: "x" }, reason: "location" },
    {
      it: "because of workersMax 0, with or without an obstacle",
      obstacle: noGpu,
      workersMax: 0,
      reason: "workers_max_zero",
    },
  ])("$it", (each) => {
    const { waitReason: reason, waitDetail } = waitReason(facts(each));
    expect(reason).toBe(each.reason);
    expect(waitDetail.length).toBeGreaterThan(0);
  });

  it("with a sentence that names the obstacle", () => {
    expect(waitReason(facts({ it: "", reason: "", failedStarts: 4 })).waitDetail).toMatch(
      /last 4 workers.*exit code 3: no such module/,
    );
    const starting = { ...facts({ it: "", reason: "", states: ["starting"] }), doing: "pulling the image 'a'" };
    expect(waitReason(starting).waitDetail).toBe("A worker is starting (pulling the image 'a').");
    expect(waitReason(facts({ it: "", reason: "", obstacle: noGpu })).waitDetail).toBe(noGpu.detail);
    const doing = "no node has room for it";
    expect(waitReason({ ...starting, doing, isFull: true })).toEqual({
      waitReason: "no_capacity",
      waitDetail: "A worker has no place yet: no node has room for it.",
    });
    expect(waitReason({ ...starting, states: ["running", "starting"], doing, isFull: true })).toEqual({
      waitReason: "no_capacity",
      waitDetail: "All workers are busy, and another has no place yet: no node has room for it.",
    });
    expect(waitReason(facts({ it: "", reason: "", states: ["running"], workersMax: 1 })).waitDetail).toContain("(1)");
  });

  it.each<[string, Partial<WaitFacts>, string, RegExp]>([
    [
      "for the only worker",
      { states: ["idle"], stillStopping: 1 },
      "workers_max_reached",
      /^All workers are busy .*\(1\).* 1 of them still runs a handler whose job was stopped; .* 5 s is replaced\.$/,
    ],
    ["for one of several workers", { states: ["idle", "idle"], stillStopping: 1 }, "workers_busy", /^A worker is free/],
    [
      "for workers of which some are busy",
      { states: ["idle", "running"], stillStopping: 1 },
      "workers_max_reached",
      /^All workers are busy .* 1 of them still runs/,
    ],
  ])("for a worker that has not stopped a cancelled job: %s", (_, more, reason, detail) => {
    const said = waitReason({ ...facts({ it: "", reason: "", workersMax: 1 }), ...more });
    expect(said).toEqual({ waitReason: reason, waitDetail: expect.stringMatching(detail) });
  });

  it.each<[string, Partial<WaitFacts>, number, string]>([
    [
      "after a pause, with the ways to end it",
      {},
      4,
      "The last 4 workers ended at their start; the next one is started in 4 s, and a save of the endpoint or its template starts it at once.",
    ],
    [
      "after a pause that a change in the handler's folder also ends",
      { pause: { leftMs: 300_000, isWatched: true } },
      1,
      "The last worker failed to start; the next one is started in 300 s, and a change in the handler's folder, or a save of the endpoint or its template, starts it at once.",
    ],
    [
      "now, since the pause is over",
      { pause: { leftMs: 0, isWatched: true } },
      1,
      "The last worker failed to start; the next one is about to be started.",
    ],
    [
      "and has begun",
      { states: ["starting"] },
      3,
      "The last 3 workers ended at their start; the next one is starting.",
    ],
  ])("for the next start, which comes %s", (_, more, failedStarts, sentence) => {
    const { waitDetail } = waitReason({ ...facts({ it: "", reason: "", failedStarts }), ...more });
    expect(waitDetail).toBe(`${sentence} Why the last one ended: exit code 3: no such module`);
  });
});
