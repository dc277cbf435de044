import { describe, expect, it } from "vitest";
import { attemptSpan, spansOf, type TracedJob } from "./spans.js";
import { readTraceparent, runSpan, spanIdOf, traceOf, traceparentOf } from "./trace.js";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const sent = `00-${traceId}-b7ad6b7169203331-01`;
const id = "01a223a0-e481-7436-9bdd-bc62d9f4f0d5-u1";
const queued = { id, queuedAt: 1_000 };

describe("A client's traceparent", () => {
  it.each([
    { it: "is kept as it is", header: sent, kept: sent },
    { it: "of a newer version is kept without what that adds", header: `cc${sent.slice(2)}-more`, kept: sent },
    { it: "of this version with more is invalid", header: `${sent}-more`, kept: undefined },
    { it: "of version ff is invalid", header: `ff${sent.slice(2)}`, kept: undefined },
    { it: "without a trace is invalid", header: `00-${"0".repeat(32)}-b7ad6b7169203331-01`, kept: undefined },
    { it: "without a span is invalid", header: `00-${traceId}-${"0".repeat(16)}-01`, kept: undefined },
    { it: "in upper case is invalid", header: sent.toUpperCase(), kept: undefined },
    { it: "with quotes is invalid", header: `${sent}"}`, kept: undefined },
    { it: "may be absent", header: undefined, kept: undefined },
  ])("$it", ({ header, kept }) => {
    expect(readTraceparent(header)).toBe(kept);
  });

  it("decides about the job's trace; without one the trace has the job's id", () => {
    expect(traceOf(id, sent)).toEqual({ traceId, parentSpanId: "b7ad6b7169203331", isSampled: true });
    expect(traceOf(id, sent.replace(/01$/, "00")).isSampled).toBe(false);
    const own = { traceId: "01a223a0e48174369bddbc62d9f4f0d5", parentSpanId: undefined, isSampled: true };
    expect(traceOf(id, undefined)).toEqual(own);
    expect(traceOf(`sync-${id}`, undefined)).toEqual(own);
  });

  it("goes on with the span that the next one belongs to", () => {
    const next = traceparentOf(queued, sent, runSpan(1));
    expect(next).toBe(`00-${traceId}-${spanIdOf(queued, "run 1")}-01`);
    expect(readTraceparent(next)).toBe(next);
    expect(spanIdOf(queued, "run 1")).not.toBe(spanIdOf(queued, "run 2"));
    expect(spanIdOf(queued, "run 1")).not.toBe(spanIdOf({ id, queuedAt: 9_000 }, "run 1")); // a retry's
  });
});

const job: TracedJob = {
  ...{ id, endpoint: { id: "abcdefghij0123", name: "shout" }, status: "COMPLETED", trace: sent },
  ...{ queuedAt: 1_000, takenAt: 3_000, finishedAt: 4_000, starts: 1, workerId: "worker00000001" },
  happened: [{ at: 2_000, event: "giveBack", note: "lost" }],
  worker: {
    createdAt: 1_100,
    phases: [
      { name: "placed", at: 1_200 },
      { name: "first take", at: 2_900 },
    ],
  },
};
const shown = (spans: ReturnType<typeof spansOf>) =>
  spans.map(({ name, startMs, endMs, error }) => [name, startMs, endMs, ...(error ? [error] : [])]);

describe("A job's spans", () => {
  it("are the job, its wait with the start of its worker, and its run", () => {
    const spans = spansOf(job);
    expect(shown(spans)).toEqual([
      ["job shout", 1_000, 4_000],
      ["wait", 1_000, 3_000],
      ["worker start", 1_100, 2_900],
      ["run", 3_000, 4_000],
    ]);
    const [root, wait, start, run] = spans;
    expect(root).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", kind: "server" });
    expect(root?.events).toEqual([{ name: "giveBack: lost", atMs: 2_000 }]);
    expect([wait?.parentSpanId, start?.parentSpanId, run?.parentSpanId]).toEqual([
      root?.spanId,
      wait?.spanId,
      root?.spanId,
    ]);
    expect(traceparentOf(queued, sent, runSpan(1))).toContain(run?.spanId);
  });

  it("have no start of a worker that was up before", () => {
    const early = { createdAt: 0, phases: [{ name: "first take", at: 900 }] };
    expect(shown(spansOf({ ...job, worker: early })).map(([name]) => name)).toEqual(["job shout", "wait", "run"]);
  });

  it("say how a job ended that no worker took", () => {
    const spans = spansOf({ ...job, status: "CANCELLED", takenAt: undefined, worker: undefined });
    expect(shown(spans)).toEqual([
      ["job shout", 1_000, 4_000, "CANCELLED"],
      ["wait", 1_000, 4_000],
    ]);
  });

  it("are none if the client does not want a trace", () => {
    const trace = sent.replace(/01$/, "00");
    const attempt = {
      ...{ job: queued, trace, attempt: 1, at: 0, durationMs: 1, host: "h" },
      status: 200,
      error: undefined,
    };
    expect([...spansOf({ ...job, trace }), ...attemptSpan(attempt)]).toEqual([]);
  });

  it("include the attempts to deliver its webhook", () => {
    const attempt = { ...{ job: queued, trace: sent, attempt: 2, at: 5_000, durationMs: 40 }, host: "example.com" };
    const [span] = attemptSpan({ ...attempt, status: 500, error: undefined });
    expect(span).toMatchObject({
      parentSpanId: spanIdOf(queued, "job"),
      startMs: 5_000,
      endMs: 5_040,
      error: "status 500",
    });
  });
});
