import type { Script } from "./steps.js";

/** An endpoint whose only worker is frozen as soon as possible. */
const sleeper = {
  workersMax: 1,
  workersMin: 0,
  scalerType: "QUEUE_DELAY",
  scalerValue: 1,
  idleTimeout: 1,
  flashBootType: "FLASHBOOT",
} as const;

/**
 * Histories that once broke a promise, made as short as possible: they run every time. (A seed alone would give another
 * history after any change in how steps are drawn.)
 */
export const kept: readonly { readonly why: string; readonly script: Script }[] = [
  {
    why: "a worker that hung while its server stopped was not watched",
    script: {
      seed: 267209969,
      endpoints: [{ workersMax: 1, workersMin: 0, scalerType: "REQUEST_COUNT", scalerValue: 4, idleTimeout: 30 }],
      delays: false,
      steps: [
        { do: "submit", at: 1, recipe: { ms: 3000, chunks: 4, ends: "output" }, policy: {} },
        { do: "pass", ms: 1000 },
        { do: "hang worker", pick: 355 },
        { do: "pass", ms: 20000 },
        { do: "stop server", downMs: 0 },
      ],
    },
  },
  {
    why: "a worker that was starting while the machine slept for an hour was killed as too slow",
    script: {
      seed: 266878648,
      endpoints: [{ workersMax: 1, workersMin: 0, scalerType: "QUEUE_DELAY", scalerValue: 1, idleTimeout: 30 }],
      delays: false,
      steps: [
        {
          do: "submit",
          at: 1,
          recipe: { ms: 300, chunks: 4, ends: "crash" },
          webhook: "hanging",
          policy: { executionTimeout: 20000 },
        },
        { do: "suspend", ms: 10000, together: true },
        { do: "cancel", pick: 441 },
        { do: "submit", at: 1, recipe: { ms: 0, chunks: 1, ends: "output" }, policy: { executionTimeout: 5000 } },
        { do: "submit", at: 1, recipe: { ms: 12000, chunks: 0, ends: "output" }, policy: {} },
        { do: "pass", ms: 1 },
        { do: "suspend", ms: 3600000 },
      ],
    },
  },
  {
    why: "clients waited for a job that was gone because its ttl was cut short",
    script: {
      seed: 80073,
      endpoints: [
        { workersMax: 3, workersMin: 0, scalerType: "REQUEST_COUNT", scalerValue: 4, idleTimeout: 1 },
        { workersMax: 1, workersMin: 1, scalerType: "REQUEST_COUNT", scalerValue: 4, idleTimeout: 5 },
      ],
      delays: false,
      steps: [
        {
          do: "submit",
          at: 0,
          recipe: { ms: 3000, chunks: 0, ends: "output" },
          key: 4,
          webhook: "hanging",
          waitMs: 20000,
          policy: {},
        },
        { do: "stop server", downMs: 60000 },
        { do: "next timer" },
        { do: "repeat", pick: 300 },
        { do: "ttl", pick: 526, ms: 10000, together: true },
      ],
    },
  },
  {
    why: "a queue stood still because a worker hung in a job that counted as stopped",
    script: {
      seed: 80105,
      endpoints: [{ workersMax: 2, workersMin: 0, scalerType: "REQUEST_COUNT", scalerValue: 4, idleTimeout: 5 }],
      delays: true,
      steps: [
        {
          do: "submit",
          at: 0,
          recipe: { ms: 3000, chunks: 0, ends: "crash" },
          waitMs: 20000,
          policy: { executionTimeout: 20000 },
          together: true,
        },
        { do: "submit", at: 1, recipe: { ms: 45000, chunks: 1, ends: "none" }, policy: { executionTimeout: 60000 } },
        { do: "submit", at: 0, recipe: { ms: 3000, chunks: 0, ends: "none" }, policy: {} },
        { do: "pass", ms: 40000 },
      ],
    },
  },
  {
    why: "a webhook was sent a fourth time, because its row was read while its last attempt was being recorded",
    script: {
      seed: 80013,
      endpoints: [
        {
          workersMax: 1,
          workersMin: 0,
          scalerType: "QUEUE_DELAY",
          scalerValue: 4,
          idleTimeout: 5,
          env: { VERSION: "850" },
        },
      ],
      delays: true,
      steps: [
        { do: "submit", at: 1, recipe: { ms: 45000, chunks: 0, ends: "output" }, policy: { executionTimeout: 20000 } },
        { do: "lose stream", pick: 94 },
        { do: "submit", at: 1, recipe: { ms: 12000, chunks: 4, ends: "output" }, waitMs: 20000, policy: {} },
        { do: "cancel", pick: 811 },
        { do: "cancel", pick: 185 },
        { do: "pass", ms: 9000 },
        { do: "pass", ms: 9000 },
        { do: "submit", at: 1, recipe: { ms: 0, chunks: 0, ends: "output" }, key: 2, policy: {} },
        { do: "ttl", pick: 985, ms: 40000 },
        { do: "pass", ms: 20000 },
        {
          do: "submit",
          at: 1,
          recipe: { ms: 5, chunks: 1, ends: "error" },
          webhook: "failing",
          waitMs: 20000,
          policy: { ttl: 90000, executionTimeout: 5000 },
        },
        { do: "cancel", pick: 855 },
        { do: "cancel", pick: 203, together: true },
        { do: "submit", at: 1, recipe: { ms: 0, chunks: 1, ends: "crash" }, webhook: "hanging", policy: {} },
        { do: "cancel", pick: 782 },
        { do: "hang worker", pick: 195 },
        { do: "retry", pick: 171, together: true },
        { do: "pass", ms: 400 },
        { do: "stream", pick: 637 },
      ],
    },
  },
  {
    why: "a server stops in order while a worker runs a job that never ends",
    script: {
      seed: 80086,
      endpoints: [
        { workersMax: 2, workersMin: 0, scalerType: "REQUEST_COUNT", scalerValue: 1, idleTimeout: 1 },
        { workersMax: 1, workersMin: 0, scalerType: "REQUEST_COUNT", scalerValue: 4, idleTimeout: 30 },
      ],
      delays: true,
      steps: [
        { do: "submit", at: 1, recipe: { ms: 12000, chunks: 0, ends: "none" }, key: 3, policy: {} },
        { do: "pass", ms: 5000, together: true },
        { do: "stop server", downMs: 0 },
      ],
    },
  },
  {
    why: "an idle worker was not frozen, because of a job that was over, and was never checked again",
    script: {
      seed: 5048,
      endpoints: [
        {
          workersMax: 1,
          workersMin: 0,
          scalerType: "REQUEST_COUNT",
          scalerValue: 1,
          idleTimeout: 5,
          flashBootType: "FLASHBOOT",
        },
        {
          workersMax: 2,
          workersMin: 0,
          scalerType: "REQUEST_COUNT",
          scalerValue: 2,
          idleTimeout: 30,
          flashBootType: "OFF",
        },
      ],
      delays: false,
      steps: [
        { do: "submit", at: 1, recipe: { ms: 3000, chunks: 1, ends: "error" }, policy: {} },
        {
          do: "submit",
          at: 0,
          recipe: { ms: 0, chunks: 4, ends: "crash" },
          webhook: "hanging",
          waitMs: 300000,
          policy: {},
        },
        { do: "pass", ms: 40 },
        {
          do: "submit",
          at: 0,
          recipe: { ms: 300, chunks: 4, ends: "output" },
          key: 1,
          webhook: "fine",
          policy: { executionTimeout: 5000 },
        },
      ],
    },
  },
  {
    why: "a frozen worker whose GPU was lost was woken for a job",
    script: {
      seed: 1,
      endpoints: [sleeper],
      delays: false,
      machine: { gpus: ["NVIDIA L4"], enforced: true, cpus: 4, memoryMib: 16384 },
      steps: [
        { do: "submit", at: 0, recipe: { ms: 300, chunks: 0, ends: "output" }, policy: {} },
        { do: "pass", ms: 9000 },
        { do: "lose gpu", pick: 0, ms: 90000 },
        { do: "pass", ms: 1000 },
        { do: "submit", at: 0, recipe: { ms: 300, chunks: 0, ends: "output" }, policy: {} },
        { do: "pass", ms: 20000 },
      ],
    },
  },
  {
    why: "a worker stayed frozen with its job, because its server died before recording that it had frozen the worker",
    script: {
      seed: 1,
      endpoints: [sleeper],
      delays: false,
      steps: [
        { do: "submit", at: 0, recipe: { ms: 300, chunks: 0, ends: "output" }, policy: {} },
        { do: "pass", ms: 5450 },
        { do: "submit", at: 0, recipe: { ms: 300, chunks: 0, ends: "output" }, policy: {} },
        { do: "kill server", calls: 0, downMs: 50 },
        { do: "pass", ms: 40000 },
      ],
    },
  },
  {
    why: "a worker stayed frozen, because the next server woke it before knowing that it was frozen",
    script: {
      seed: 140106,
      endpoints: [{ ...sleeper, workersMax: 3, workersMin: 1 }],
      delays: false,
      steps: [
        { do: "kill freezing server", calls: 3, downMs: 0 },
        { do: "pass", ms: 9000 },
        {
          do: "save endpoint",
          at: 0,
          input: {
            workersMax: 2,
            workersMin: 0,
            scalerType: "REQUEST_COUNT",
            scalerValue: 2,
            idleTimeout: 1,
            flashBootType: "FLASHBOOT",
          },
        },
        { do: "submit", at: 0, recipe: { ms: 3000, chunks: 4, ends: "output" }, policy: {} },
      ],
    },
  },
  {
    why: "a worker that could not be woken, and that the server tried to freeze again, was kept forever",
    script: {
      seed: 160136,
      endpoints: [
        { ...sleeper, workersMax: 2, workersMin: 1, scalerType: "REQUEST_COUNT", scalerValue: 4, gpuCount: 2 },
        { ...sleeper, workersMax: 2, workersMin: 1, scalerValue: 4 },
      ],
      delays: true,
      machine: { gpus: ["NVIDIA L4", "NVIDIA L4"], enforced: true, cpus: 4, memoryMib: 16384 },
      steps: [
        { do: "delete endpoint", at: 1, together: true },
        { do: "pass", ms: 9000 },
        { do: "fail freeze", verb: "resume" },
      ],
    },
  },
  {
    why: "a worker gets a job at the moment when it is about to be frozen",
    script: {
      seed: 0,
      endpoints: [sleeper],
      delays: true,
      steps: [
        { do: "submit", at: 0, recipe: { ms: 300, chunks: 0, ends: "output" }, policy: {} },
        { do: "pass", ms: 1341 },
        { do: "next timer", together: true },
        { do: "submit", at: 0, recipe: { ms: 3000, chunks: 0, ends: "output" }, policy: {} },
        { do: "pass", ms: 20000 },
      ],
    },
  },
];
