import { describe, expect, it } from "vitest";
import type { JobReport } from "./job.js";
import { statusText } from "./status-text.js";

const job: JobReport = {
  unreadBytes: 0,
  no: 1,
  endpointNo: 1,
  id: "job-1",
  status: "IN_QUEUE",
  place: 1,
  lowPriority: false,
  starts: 0,
  excused: 0,
  retries: 0,
  workerNo: undefined,
  workerId: "",
  createdAt: 1_000,
  queuedAt: 1_000,
  takenAt: undefined,
  finishedAt: undefined,
  deadlineAt: undefined,
  ttlEndAt: 90_000,
  expiresAt: 90_000,
  executionTimeoutMs: 5_000,
  retentionMs: 60_000,
  hasWebhook: false,
  stopWanted: false,
  output: undefined,
  error: undefined,
  progress: undefined,
};
const running = { ...job, status: "IN_PROGRESS", takenAt: 1_200, workerId: "worker00000001", starts: 1 } as const;
const done = { ...running, status: "COMPLETED", finishedAt: 1_900 } as const;
const body = (of: JobReport, ...more: [number?, Parameters<typeof statusText>[2]?, string?]) =>
  JSON.parse(statusText(of, more[0] ?? 2_000, more[1], more[2]));

describe("A status body", () => {
  it("of a waiting job has the reason of the wait, and its position", () => {
    const waiting = { waitReason: "no_worker", waitDetail: 'none "yet"', queuePosition: 0 } as const;
    expect(body(job, 1_500, waiting)).toEqual({
      id: "job-1",
      status: "IN_QUEUE",
      delayTime: 500,
      executionTime: 0,
      workerId: "",
      retries: 0,
      ...waiting,
    });
  });

  it("leaves absent fields out instead of sending null", () => {
    expect(Object.keys(body(done))).toEqual(["id", "status", "delayTime", "executionTime", "workerId", "retries"]);
    const waiting = { waitReason: "starting", waitDetail: "soon" } as const;
    expect(body(job, 1_500, waiting)).not.toHaveProperty("queuePosition");
  });

  it("passes output on as the text it arrived as", () => {
    const output = '{"b":12345678901234567890,"a":1e400, "b":"\\ud800"}';
    expect(statusText({ ...done, output }, 2_000)).toContain(`"output":${output},`);
  });

  it("shows progress as output while it runs, and never after", () => {
    const progress = '{"at":"half"}';
    expect(body({ ...running, progress }).output).toEqual({ at: "half" });
    expect(body({ ...done, progress })).not.toHaveProperty("output");
    expect(body({ ...job, progress })).not.toHaveProperty("output");
    expect(body({ ...running, output: "1" })).not.toHaveProperty("output");
  });

  it("shows an error in a final state only, quotes and all", () => {
    const error = 'it said "no"\n\u2028';
    expect(body({ ...done, status: "FAILED", error }).error).toBe(error);
    expect(body({ ...running, error })).not.toHaveProperty("error");
  });

  it("has the times of the present run", () => {
    expect(body(running)).toMatchObject({ delayTime: 200, executionTime: 800 });
    expect(body(done, 9_000)).toMatchObject({ delayTime: 200, executionTime: 700 });
  });

  it("can have further members added at its end", () => {
    expect(body(done, 2_000, undefined, ',"input":{"a":1}')).toMatchObject({ input: { a: 1 } });
  });
});
