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
    oldestWaiting: async (no) => (no % 2 === 0 ? 60_000 - no : undefined),
    gpus: () => ({ held: 1, free: 3 }),
    now: () => 60_000,
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

it("The oldest wait is that of jobs with normal priority, and only of endpoints where jobs wait", async () => {
  const { text } = await meterOf(4).page();
  expect(text.match(/^millrace_job_oldest_wait_seconds.*$/gm)).toEqual([
    'millrace_job_oldest_wait_seconds{endpoint="endpoint2"} 0.002',
  ]);
});

it("An attempt of a webhook counts by its outcome", async () => {
  const { emit, page } = meterOf(0);
  const attempt = { type: "webhook.attempted", jobId: "j", host: "h", error: undefined } as const;
  emit({ ...attempt, status: 200, final: true });
  emit({ ...attempt, status: 500, final: false });
  emit({ ...attempt, status: undefined, error: "refused", final: false });
  const lines = async () => (await page()).text.match(/(?<=^millrace_webhook_attempts_total\{outcome=).*$/gm);
  expect(await lines()).toEqual(['"delivered"} 1', '"failed"} 2', '"given_up"} 0']);
  emit({ ...attempt, status: 500, final: true });
  expect(await lines()).toEqual(['"delivered"} 1', '"failed"} 2', '"given_up"} 1']);
});

it("A GPU is lost until it is back", async () => {
  const { emit, page } = meterOf(0);
  const lines = async () => (await page()).text.match(/(?<=^millrace_gpus\{state=).*$/gm);
  for (const gpuId of ["one", "other"]) emit({ type: "gpu.lost", gpuId, name: "n", why: "" });
  expect(await lines()).toEqual(['"held"} 1', '"free"} 3', '"lost"} 2']);
  emit({ type: "gpu.back", gpuId: "one", name: "n" });
  expect(await lines()).toEqual(['"held"} 1', '"free"} 3', '"lost"} 1']);
});
