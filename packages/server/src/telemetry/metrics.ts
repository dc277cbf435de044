import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Emit } from "../events.js";
import { Durations } from "./durations.js";

/** The sources of gauges, read at each scrape. */
export interface MetricSources {
  readonly endpoints: () => { no: number; id: string }[];
  readonly tally: (
    endpointNo: number,
  ) => Promise<{ waiting: number; running: number; completed: number; failed: number }>;
  readonly workers: (endpointNo: number) => Promise<ReadonlyMap<string, number>>;
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];

/** Counters fed by events, and gauges read when Prometheus scrapes. */
export function metrics(sources: MetricSources) {
  const registry = new Registry();
  // the sampling interval of the event loop in ms: a shorter one would be most of an idle server's work
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  const registers = [registry];
  const delay = new Durations({
    name: "millrace_job_delay_seconds",
    help: "From submission to take.",
    labelNames: ["endpoint"],
    bucketsSeconds: seconds,
    registry,
  });
  const execution = new Durations({
    name: "millrace_job_execution_seconds",
    help: "From take to end.",
    labelNames: ["endpoint", "status"],
    bucketsSeconds: seconds,
    registry,
  });
  const requests = new Durations({
    name: "millrace_request_seconds",
    help: "Requests, by route, method and status.",
    labelNames: ["route", "method", "status"],
    bucketsSeconds: seconds,
    registry,
  });
  const givenBack = new Counter({
    name: "millrace_jobs_given_back_total",
    help: "Jobs given back to the queue.",
    labelNames: ["endpoint", "excused"],
    registers,
  });
  const failedStarts = new Counter({
    name: "millrace_worker_starts_failed_total",
    help: "Workers that ended before they did anything.",
    labelNames: ["endpoint"],
    registers,
  });
  const jobs = new Gauge({
    name: "millrace_jobs",
    help: "Jobs by state.",
    labelNames: ["endpoint", "state"],
    registers,
  });
  const workers = new Gauge({
    name: "millrace_workers",
    help: "Workers by state.",
    labelNames: ["endpoint", "state"],
    registers,
  });

  const emit: Emit = (event) => {
    switch (event.type) {
      case "job.taken":
        return delay.of(event.endpointId).observe(event.delayMs / 1_000);
      case "job.ended":
        return execution.of(event.endpointId, event.status).observe(event.executionMs / 1_000);
      case "request.served":
        return requests.of(event.route, event.method, event.status).observe(event.durationMs / 1_000);
      case "job.givenBack":
        return givenBack.inc({ endpoint: event.endpointId, excused: String(event.excused) });
      case "worker.startFailed":
        return failedStarts.inc({ endpoint: event.endpointId });
    }
  };

  async function page() {
    jobs.reset();
    workers.reset();
    for (const { no, id } of sources.endpoints()) {
      const { waiting, running, completed, failed } = await sources.tally(no);
      const byState = { IN_QUEUE: waiting, IN_PROGRESS: running, COMPLETED: completed, FAILED: failed };
      for (const [state, count] of Object.entries(byState)) jobs.set({ endpoint: id, state }, count);
      for (const [state, count] of await sources.workers(no)) workers.set({ endpoint: id, state }, count);
    }
    return { contentType: registry.contentType, text: await registry.metrics() };
  }
  return { emit, page };
}
