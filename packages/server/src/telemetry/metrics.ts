import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Emit } from "../events.js";

/** What is asked at each scrape. */
export interface MetricSources {
  readonly endpoints: () => { no: number; id: string }[];
  readonly tally: (
    endpointNo: number,
  ) => Promise<{ waiting: number; running: number; completed: number; failed: number }>;
  readonly workers: (endpointNo: number) => Promise<ReadonlyMap<string, number>>;
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];

/** A histogram's children by their labels: finding one anew for each observation is most of the work. */
function bound<Label extends string>(histogram: Histogram<Label>) {
  const children = new Map<string, Histogram.Internal<Label>>();
  return (...labels: string[]) => {
    const name = labels.join(" ");
    let child = children.get(name);
    if (!child) {
      child = histogram.labels(...labels);
      children.set(name, child);
    }
    return child;
  };
}

/** Counters made from events, and gauges read from the store when Prometheus asks. */
export function metrics(sources: MetricSources) {
  const registry = new Registry();
  // the event loop is looked at so often: more would be most of what an idle server does
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  const registers = [registry];
  const delay = new Histogram({
    name: "millrace_job_delay_seconds",
    help: "From submission to take.",
    labelNames: ["endpoint"],
    buckets: seconds,
    registers,
  });
  const execution = new Histogram({
    name: "millrace_job_execution_seconds",
    help: "From take to end.",
    labelNames: ["endpoint", "status"],
    buckets: seconds,
    registers,
  });
  const requests = new Histogram({
    name: "millrace_request_seconds",
    help: "Requests, by route, method and status.",
    labelNames: ["route", "method", "status"],
    buckets: seconds,
    registers,
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

  const [delayOf, executionOf, requestOf] = [bound(delay), bound(execution), bound(requests)];

  const emit: Emit = (event) => {
    switch (event.type) {
      case "job.taken":
        return delayOf(event.endpointId).observe(event.delayMs / 1_000);
      case "job.ended":
        return executionOf(event.endpointId, event.status).observe(event.executionMs / 1_000);
      case "request.served":
        return requestOf(event.route, event.method, String(event.status)).observe(event.durationMs / 1_000);
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
