import { Counter, collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { Emit } from "../events.js";
import { limits } from "../limits/index.js";
import { turns } from "../turns.js";
import { Durations } from "./durations.js";
import { metricTable } from "./metric-table.js";

/** The sources of gauges, read at each scrape. */
export interface MetricSources {
  readonly endpoints: () => { no: number; id: string }[];
  readonly tally: (
    endpointNo: number,
  ) => Promise<{ waiting: number; running: number; completed: number; failed: number }>;
  readonly workers: (endpointNo: number) => Promise<ReadonlyMap<string, number>>;
  /** When the oldest waiting job of normal priority was queued; undefined if none waits. */
  readonly oldestWaiting: (endpointNo: number) => Promise<number | undefined>;
  readonly gpus: () => { held: number; free: number };
  readonly now: () => number;
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];

/** Counters fed by events, and gauges read when Prometheus scrapes. */
export function metrics(sources: MetricSources) {
  const registry = new Registry();
  // the sampling interval of the event loop in ms: a shorter one would be most of an idle server's work
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  const registers = [registry];
  const durations = { bucketsSeconds: seconds, registry };
  const delay = new Durations({ ...metricTable.delay, ...durations });
  const execution = new Durations({ ...metricTable.execution, ...durations });
  const requests = new Durations({ ...metricTable.requests, ...durations });
  const givenBack = new Counter({ ...metricTable.givenBack, registers });
  const failedStarts = new Counter({ ...metricTable.failedStarts, registers });
  const webhooks = new Counter({ ...metricTable.webhooks, registers });
  // a counter that appears with its first event looks to Prometheus as if that event had never happened
  for (const outcome of ["delivered", "failed", "given_up"]) webhooks.inc({ outcome }, 0);
  const lostGpus = new Set<string>();
  const gauges = gaugesOf(sources, lostGpus);

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
      case "webhook.attempted":
        return webhooks.inc({ outcome: !event.final ? "failed" : event.status === 200 ? "delivered" : "given_up" });
      case "gpu.lost":
        return void lostGpus.add(event.gpuId);
      case "gpu.back":
        return void lostGpus.delete(event.gpuId);
    }
  };

  async function page() {
    const texts: string[] = [];
    for (const metric of [...(registry.getMetricsAsArray() as unknown as Shown[]), ...gauges])
      texts.push(await textOf(metric));
    return { contentType: registry.contentType, text: `${texts.join("\n\n")}\n` };
  }

  /** Drops the counts of a deleted endpoint. */
  function forget(endpoint: string): void {
    delay.forget(endpoint);
    execution.forget(endpoint);
    failedStarts.remove({ endpoint });
    for (const excused of ["true", "false"]) givenBack.remove({ endpoint, excused });
  }
  return { emit, page, forget };
}

/** The gauges, which are read while the page is made. */
function gaugesOf(sources: MetricSources, lostGpus: ReadonlySet<string>) {
  const gauge = ({ name, help }: { name: string; help: string }, values: () => Values) => ({
    get: async () => ({ name, help, type: "gauge", aggregator: "sum", values: values() }),
  });
  /** The endpoints with waiting jobs, so that the oldest job is not looked for at all the others. */
  let waitingAt: { no: number; id: string }[] = [];
  return [
    gauge(metricTable.jobs, async function* () {
      waitingAt = [];
      for (const { no, id } of sources.endpoints()) {
        const { waiting, running, completed, failed } = await sources.tally(no);
        if (waiting > 0) waitingAt.push({ no, id });
        const byState = { IN_QUEUE: waiting, IN_PROGRESS: running, COMPLETED: completed, FAILED: failed };
        for (const [state, value] of Object.entries(byState)) yield { labels: { endpoint: id, state }, value };
      }
    }),
    gauge(metricTable.oldestWait, async function* () {
      for (const { no, id } of waitingAt) {
        const queuedAt = await sources.oldestWaiting(no);
        if (queuedAt === undefined) continue;
        yield { labels: { endpoint: id }, value: Math.max(0, sources.now() - queuedAt) / 1_000 };
      }
    }),
    gauge(metricTable.workers, async function* () {
      for (const { no, id } of sources.endpoints())
        for (const [state, value] of await sources.workers(no)) yield { labels: { endpoint: id, state }, value };
    }),
    gauge(metricTable.gpus, function* () {
      const byState = { ...sources.gpus(), lost: lostGpus.size };
      for (const [state, value] of Object.entries(byState)) yield { labels: { state }, value };
    }),
  ];
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}
type Values = Iterable<Value> | AsyncIterable<Value>;

/** The part of a metric that prom-client reads, except that the values may be made while they are read. */
interface Shown {
  get(): Promise<{ readonly name: string; readonly help: string; readonly values: Values }>;
}

/** A metric's lines, a few hundred in each turn of the event loop: with 10,000 endpoints it has 40,000. */
async function textOf(metric: Shown): Promise<string> {
  const { values, ...head } = await metric.get();
  const texts: string[] = [];
  const add = async (some: readonly Value[]) => {
    if (turns.isOver) await turns.take(["metrics"]);
    const registry = new Registry();
    registry.registerMetric({ name: head.name, get: async () => ({ ...head, values: some }) } as unknown as Metric);
    const text = (await registry.metrics()).trimEnd();
    texts.push(texts.length === 0 ? text : text.slice(endOfHead(text)));
  };
  let slice: Value[] = [];
  for await (const value of values) {
    slice.push(value);
    if (slice.length < limits.metricsLinesPerSlice) continue;
    await add(slice);
    slice = [];
  }
  if (slice.length > 0 || texts.length === 0) await add(slice);
  return texts.join("\n");
}

/** Behind the two lines of each metric's help and type. */
const endOfHead = (text: string): number => text.indexOf("\n", text.indexOf("\n") + 1) + 1;
