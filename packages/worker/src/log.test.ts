import { afterEach, expect, it, vi } from "vitest";
import { logFailure, openLog } from "./log.js";

afterEach(() => vi.unstubAllEnvs());

function lines(level: string | undefined): unknown[] {
  vi.stubEnv("RUNPOD_DEBUG_LEVEL", level);
  const written: string[] = [];
  const log = openLog("a", (line) => written.push(line));
  log.debug("details");
  log.info("half", { done: 2n, of: 4 }, [1]);
  log.error("bad");
  return written.map((line) => JSON.parse(line));
}

it("writes one JSON line per call, with values that are not JSON as text", () => {
  expect(lines("INFO")).toEqual([
    { requestId: "a", message: "half [object Object] [1]", level: "INFO" },
    { requestId: "a", message: "bad", level: "ERROR" },
  ]);
});

it("marks the line about a failed job, at its end", () => {
  const written: string[] = [];
  logFailure("a", "Error: bad", (line) => written.push(line));
  expect(written).toEqual(['{"requestId":"a","message":"Error: bad","level":"ERROR","outcome":"FAILED"}\n']);
});

it.each([
  { level: "DEBUG", count: 3 },
  { level: "error", count: 1 },
  { level: "nonsense", count: 2 },
  { level: undefined, count: 2 },
])("writes $count lines at level $level", ({ level, count }) => {
  expect(lines(level).length).toBe(count);
});
