import { span } from "@millrace/api";
import type { MillraceEvent } from "../../events.js";

/** What a line is about, which decides its mark and colour. */
export type Kind = "queued" | "life" | "done" | "failed" | "attention";

/** One event as a person reads it. */
export interface EventLine {
  readonly kind: Kind;
  readonly endpointId?: string;
  readonly text: string;
  /** Shown only where everything is shown. */
  readonly isDetail?: true;
}

/** Words for ids, and why an endpoint last started workers. */
export interface Names {
  readonly job: (id: string) => string;
  readonly worker: (id: string) => string;
  readonly reason: (endpointId: string) => string | undefined;
}

/** The line of an event; a job's end has its own, which needs more than the event. */
export function lineOf(
  event: Exclude<MillraceEvent, { type: "job.ended" }>,
  { job, worker, reason }: Names,
): EventLine | undefined {
  switch (event.type) {
    case "server.stopping":
      return { kind: "life", text: "stopping: workers finish what they can, other jobs go back to the queue" };
    case "server.warning":
      return { kind: "attention", text: event.message };
    case "request.failed":
      return { kind: "failed", text: `a request to ${event.route} failed here: ${wordsOf(event.error)}` };
    case "job.submitted":
      return { kind: "queued", ...of(event), text: `job ${job(event.jobId)}  queued` };
    case "job.taken":
      return {
        kind: "life",
        ...of(event),
        text: `job ${job(event.jobId)}  at ${worker(event.workerId)}`,
        isDetail: true,
      };
    case "job.givenBack":
      return { kind: "attention", ...of(event), text: `job ${job(event.jobId)}  back in the queue: ${event.why}` };
    case "worker.started": {
      const why = reason(event.endpointId);
      return { kind: "life", ...of(event), text: `worker ${worker(event.workerId)}  starting${why ? `: ${why}` : ""}` };
    }
    case "worker.ready":
      return {
        kind: "life",
        ...of(event),
        text: `worker ${worker(event.workerId)}  ready after ${span(event.afterMs)}`,
      };
    case "worker.stopping":
      return { kind: "life", ...of(event), text: `worker ${worker(event.workerId)}  stopping: ${event.why}` };
    case "worker.pausing":
      return { kind: "life", ...of(event), text: `worker ${worker(event.workerId)}  paused: ${event.why}` };
    case "worker.resuming":
      return { kind: "life", ...of(event), text: `worker ${worker(event.workerId)}  resumed: ${event.why}` };
    case "worker.ended":
      return { kind: "life", ...of(event), text: `worker ${worker(event.workerId)}  ended: ${event.why}` };
    case "worker.startFailed": {
      const times = event.failedStarts > 1 ? `, ${event.failedStarts} times in a row` : "";
      const text = `worker ${worker(event.workerId)}  did not start${times}: ${inOneLine(event.why)}`;
      return { kind: "attention", ...of(event), text };
    }
    case "endpoint.scaled":
      return { kind: "life", ...of(event), text: `${event.outcome}: ${event.reason}`, isDetail: true };
    case "gpu.none": {
      const text = `no GPU to give out here: ${event.effect}. ${event.why ?? ""}`.trim();
      return event.isMissed ? { kind: "attention", text } : { kind: "life", text, isDetail: true };
    }
    case "gpu.found":
      return { kind: "life", text: `GPU found: ${event.name}` };
    case "gpu.lost":
      return { kind: "attention", text: `GPU lost: ${event.name}: ${event.why}` };
    case "gpu.back":
      return { kind: "life", text: `GPU back: ${event.name}` };
    case "volume.passed":
      return { kind: "attention", text: `volume ${event.volumeId} holds more than its ${event.sizeGb} GB` };
    case "volume.bounded":
      return {
        kind: "life",
        text: `volume ${event.volumeId}: ${event.by} holds it to its ${event.sizeGb} GB`,
        isDetail: true,
      };
    case "volume.unbounded": {
      const text = `volume ${event.volumeId}: nothing holds it to its ${event.sizeGb} GB: ${event.why}`;
      return event.isExpected ? { kind: "life", text, isDetail: true } : { kind: "attention", text };
    }
    case "webhook.attempted": {
      if (event.status === 200)
        return { kind: "life", text: `webhook of job ${job(event.jobId)} delivered`, isDetail: true };
      const why = event.error ?? `it answered ${event.status}`;
      return {
        kind: "attention",
        text: `webhook of job ${job(event.jobId)} to ${event.host} failed${event.final ? " for good" : ""}: ${why}`,
      };
    }
    case "webhook.failing":
      return { kind: "attention", text: `webhooks to ${event.receiverOrigin} keep failing: ${event.error}` };
    case "server.started":
    case "server.ready":
    case "request.served":
    case "job.expired":
      return undefined;
  }
}

const of = ({ endpointId }: { readonly endpointId: string }) => ({ endpointId });

/** A failure without the lines between its first and its last one: the worker has printed them above. */
function inOneLine(why: string): string {
  const [first = "", ...rest] = why.trimEnd().split("\n");
  const last = rest.findLast((line) => !/^\s+at /.test(line))?.trim();
  return last === undefined ? first : `${first.replace(/:? *Traceback \(most recent call last\):$/, "")}: ${last}`;
}

const wordsOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));
