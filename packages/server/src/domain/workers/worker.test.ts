import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { newWorker as worker } from "../../testing/facts-fixture.js";
import { failedToStart, type Worker, workerState } from "./worker.js";

describe("A worker is shown as", () => {
  it.each<[string, Partial<Worker>, number]>([
    ["starting", {}, 0],
    ["starting", { startedAt: 2 }, 0],
    ["idle", { readyAt: 3 }, 0],
    ["running", { readyAt: 3 }, 1],
    ["closing", { readyAt: 3, wanted: "closed" }, 1],
    ["paused", { readyAt: 3, wanted: "paused" }, 0],
    ["stopping", { readyAt: 3, wanted: "stopped" }, 1],
    ["stopping", { readyAt: 3, killAt: 9 }, 1], // it is lost
    ["ended", { endedAt: 9 }, 0],
    ["ended", { endedAt: 9, wanted: "stopped" }, 1],
  ])("%s: %j, holding %i", (state, more, held) => {
    expect(workerState({ ...worker, ...more }, held)).toBe(state);
  });
});

describe("The end of a worker counts as a failed start", () => {
  it.each<[boolean, string, Partial<Worker>, number]>([
    [true, "before it did anything", {}, 0],
    [true, "though it had asked for a job", { readyAt: 3 }, 0],
    [false, "when it was up for five minutes", { readyAt: 10 - limits.provenMs }, 0],
    [true, "when it was closed meanwhile", { wanted: "closed" }, 0],
    [false, "when it held a job", {}, 1],
    [false, "when it had finished a job", { lastDoneAt: 5 }, 0],
    [false, "when the server stopped it", { wanted: "stopped" }, 0],
    [false, "when the server paused it", { wanted: "paused" }, 0],
  ])("%s: %s", (failed, _, more, held) => {
    expect(failedToStart({ ...worker, ...more }, held, 10)).toBe(failed);
  });
});
