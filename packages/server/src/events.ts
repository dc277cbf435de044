import type { JobStatus } from "./domain/jobs/job.js";
import type { QueuedJob } from "./domain/jobs/trace.js";
import type { Exit } from "./domain/workers/worker.js";

/** Everything noteworthy that happens, for logs and metrics. Never contains secrets or payloads. */
export type MillraceEvent =
  | { type: "server.started"; url: string }
  | { type: "server.ready"; url: string; facts: Readonly<Record<string, string>> }
  | { type: "server.stopping"; signal: string }
  | { type: "server.warning"; message: string; error?: unknown }
  | { type: "request.failed"; requestId: string; route: string; error: unknown }
  | { type: "request.served"; route: string; method: string; status: number; durationMs: number }
  | { type: "job.submitted"; endpointId: string; jobId: string; requestId: string }
  | { type: "job.taken"; endpointId: string; jobId: string; workerId: string; delayMs: number }
  | { type: "job.ended"; endpointId: string; jobId: string; status: JobStatus; executionMs: number }
  | { type: "job.givenBack"; endpointId: string; jobId: string; workerId: string; excused: boolean; why: string }
  | { type: "job.expired"; count: number }
  | { type: "worker.started"; endpointId: string; workerId: string; provider: string; ref: object }
  | { type: "worker.ready"; endpointId: string; workerId: string; afterMs: number }
  | { type: "worker.stopping"; endpointId: string; workerId: string; why: string }
  | { type: "worker.pausing"; endpointId: string; workerId: string; why: string }
  | { type: "worker.resuming"; endpointId: string; workerId: string; why: string }
  | { type: "worker.ended"; endpointId: string; workerId: string; exit: Exit; why: string }
  | { type: "worker.startFailed"; endpointId: string; workerId: string; failedStarts: number; why: string }
  | { type: "gpu.none"; effect: string; why: string | undefined; isMissed: boolean }
  | { type: "gpu.found"; gpuId: string; name: string; memoryMib: number; driver: string }
  | { type: "gpu.lost"; gpuId: string; name: string; why: string }
  | { type: "gpu.back"; gpuId: string; name: string }
  | { type: "volume.passed"; volumeId: string; usedBytes: number; sizeGb: number }
  | { type: "volume.bounded"; volumeId: string; sizeGb: number; by: string }
  | { type: "volume.unbounded"; volumeId: string; sizeGb: number; why: string; isExpected: boolean }
  | { type: "endpoint.scaled"; endpointId: string; outcome: string; reason: string }
  | {
      type: "webhook.attempted";
      jobId: string;
      host: string;
      status: number | undefined;
      error: string | undefined;
      final: boolean;
      /** The attempt, if jobs are traced here. */
      traced?: { job: QueuedJob; trace: string | undefined; attempt: number; at: number; durationMs: number };
    }
  | { type: "webhook.failing"; receiverOrigin: string; userId: string; failures: number; error: string };

export type Emit = (event: MillraceEvent) => void;
