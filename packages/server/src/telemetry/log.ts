import pino from "pino";
import type { Emit, MillraceEvent } from "../events.js";

/** The level and sentence of each event. Jobs that go well are logged at `debug`, because metrics count them. */
function line(event: MillraceEvent): ["debug" | "info" | "warn" | "error", string] | undefined {
  switch (event.type) {
    case "server.started":
      return ["debug", "listening"];
    case "server.ready":
      return ["info", `Millrace is ready at ${event.url}`];
    case "server.stopping":
      return ["info", `stopping on ${event.signal}: workers have their grace, then their jobs are given back`];
    case "server.warning":
      return ["warn", event.message];
    case "request.failed":
      return ["error", `a request to ${event.route} failed on our side`];
    case "request.served":
      return undefined;
    case "job.submitted":
      return ["debug", "job submitted"];
    case "job.taken":
      return ["debug", "job taken"];
    case "job.ended":
      return event.status === "COMPLETED" ? ["debug", "job completed"] : ["info", `job ${event.status}`];
    case "job.givenBack":
      return ["info", `job given back: ${event.why}`];
    case "job.expired":
      return ["debug", `${event.count} expired jobs deleted`];
    case "worker.started":
      return ["info", "worker started"];
    case "worker.ready":
      return ["info", `worker ready after ${event.afterMs} ms`];
    case "worker.stopping":
      return ["info", `stopping the worker: ${event.why}`];
    case "worker.pausing":
      return ["info", `pausing the worker: ${event.why}`];
    case "worker.resuming":
      return ["info", `resuming the worker: ${event.why}`];
    case "worker.ended":
      return ["info", `worker ended: ${event.why}`];
    case "worker.startFailed":
      return ["warn", `worker failed at its start (${event.failedStarts} in a row): ${event.why}`];
    case "gpu.none":
      return [event.isMissed ? "warn" : "info", `no GPU to give out here: ${event.effect}. ${event.why ?? ""}`.trim()];
    case "gpu.found":
      return ["info", `GPU found: ${event.name}`];
    case "gpu.lost":
      return ["warn", `GPU lost: ${event.name}: ${event.why}`];
    case "gpu.back":
      return ["info", `GPU back: ${event.name}`];
    case "volume.passed":
      return ["warn", `a volume holds more than its size of ${event.sizeGb} GB`];
    case "volume.bounded":
      return ["info", `a volume's size of ${event.sizeGb} GB is enforced by ${event.by}`];
    case "volume.unbounded":
      return [
        event.isExpected ? "debug" : "warn",
        `a volume's size of ${event.sizeGb} GB is not enforced: ${event.why}`,
      ];
    case "endpoint.scaled":
      return ["info", `${event.outcome}: ${event.reason}`];
    case "webhook.attempted":
      return event.status === 200 ? ["debug", "webhook delivered"] : ["info", "webhook attempt failed"];
    case "webhook.failing":
      return ["warn", `webhooks to ${event.receiverOrigin} keep failing: ${event.error}`];
  }
}

/** The log for programs: JSON lines, one for each event that matters. */
export function eventLog(level: string): Emit {
  const logger = pino({ level, base: null });
  return (event) => {
    const told = line(event);
    if (!told || !logger.isLevelEnabled(told[0])) return;
    const { type, error, ...rest } = event as MillraceEvent & { error?: unknown };
    logger[told[0]]({ event: type, ...rest, ...(error === undefined ? {} : { err: error }) }, told[1]);
  };
}
