import { expect, it } from "vitest";
import { limits } from "../limits/index.js";
import { withTurns } from "../testing/turns-fixture.js";
import { metrics } from "./metrics.js";

function meterOf(count: number) {
  const endpoints = Array.from({ length: count }, (_, no) => ({ no, id: `endpoint${no}` }));
  return metrics({
    endpoints: () => endpoints,
    tally: async (no) => ({ waiting: no, running: 1, completed: 2, failed: 3 }),
    workers: async () => new Map([["IDLE", 1]]),
  });
}

it("The page of a thousand endpoints is made in many turns, and has one header for each metric", async () => {
  const count = 1_000;
  const { emit, page } = meterOf(count);
  const job = { endpointId: "endpoint7", jobId: "j", workerId: "w" };
  emit({ type: "job.taken", ...job, delayMs: 200 });
  emit({ type: "job.givenBack", ...job, excused: true, why: "" });
  const { value, waits } = await withTurns(page);
  expect(waits).toBeGreaterThanOrEqual((5 * count) / limits.metricsLinesPerSlice);
  const { text } = value;
  expect(text.match(/^# TYPE millrace_jobs gauge$/gm)).toHaveLength(1);
  expect(text.match(/^millrace_jobs\{endpoint="endpoint\d+",state="IN_QUEUE"\} \d+$/gm)).toHaveLength(count);
  expect(text.match(/^millrace_workers\{endpoint="endpoint\d+",state="IDLE"\} 1$/gm)).toHaveLength(count);
  expect(text).toMatch(/^millrace_job_delay_seconds_bucket\{le="0.25",endpoint="endpoint7"\} 1$/m);
  expect(text).toMatch(/^process_cpu_seconds_total /m);
  expect(text.endsWith("\n")).toBe(true);
  // A blank line separates the metrics.
  for (const block of text.trimEnd().split("\n\n")) expect(block).toMatch(/^# HELP .+\n# TYPE .+(\n[^#].*)*$/);
});

it("A deleted endpoint's counts are dropped, and no others", async () => {
  const { emit, page, forget } = meterOf(0);
  for (const endpointId of ["gone", "stays"]) {
    const job = { endpointId, jobId: "j", workerId: "w" };
    emit({ type: "job.taken", ...job, delayMs: 1 });
    emit({ type: "job.ended", ...job, status: "COMPLETED", executionMs: 1 });
    for (const excused of [true, false]) emit({ type: "job.givenBack", ...job, excused, why: "" });
    emit({ type: "worker.startFailed", endpointId, workerId: "w", failedStarts: 1, why: "" });
  }
  const lines = async (id: string) => (await page()).text.split("\n").filter((line) => line.includes(id)).length;
  const before = await lines("stays");
  expect(await lines("gone")).toBe(before);
  forget("gone");
  expect([await lines("gone"), await lines("stays")]).toEqual([0, before]);
});
