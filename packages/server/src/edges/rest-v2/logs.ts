import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import Type from "typebox";
import { maySee } from "../../domain/access/key.js";
import { momentOf } from "../../domain/workers/log-line.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { ownEndpoint } from "../../operations/endpoints/save-endpoint.js";
import { followEndpointLog, followWorkerLog, type LogEvent } from "../../operations/logs/follow-logs.js";
import {
  assertInReach,
  type LinePosition,
  type LogAsk,
  readEndpointLog,
  readWorkerLog,
  type ShownLine,
} from "../../operations/logs/read-logs.js";
import { findPod } from "../../operations/pods/save-pod.js";
import { ownWorker } from "../../operations/workers/show-workers.js";
import { holdFor } from "../shared/access.js";
import { type EventForm, followLog, goneOf, type Log, type LogRouteParts } from "../shared/logs/follow-log.js";
import { slicesOf } from "../shared/logs/slices.js";
import { idOf } from "../shared/params.js";
import { route } from "./route-schema.js";

const sources = ["container", "system"] as const;
const query = Type.Object({
  source: Type.Optional(Type.Union(sources.map((source) => Type.Literal(source)))),
  tail: Type.Optional(Type.String({ description: "How many of the last lines come first, 0 to 5000; default 100." })),
  since: Type.Optional(Type.String({ description: "Instead of tail: lines from this RFC 3339 time on." })),
});
interface Query {
  readonly source?: (typeof sources)[number];
  readonly tail?: string;
  readonly since?: string;
}

/** Workers' logs as server-sent events. */
export function logRoutes(app: FastifyInstance, parts: LogRouteParts): void {
  app.get(
    "/serverless/:endpointId/workers/:workerId/logs",
    route({
      operationId: "getWorkerLogs",
      summary: "A worker's output as server-sent events, until it ends",
      tag: "serverless",
      names: ["endpointId", "workerId"],
      querystring: query,
      reply: Type.String({ description: "Events with an id, and data of source, line and ts." }),
      media: "text/event-stream",
      errors: [409],
    }),
    async (request, reply) => {
      const endpoint = ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
      const workerId = idOf(request, "workerId");
      const { row } = await ownWorker(parts, request.caller, workerId);
      if (row.endpointNo !== endpoint.no)
        throw new Refusal("NOT_FOUND", `This endpoint has no worker '${workerId.slice(0, 80)}'.`);
      const worker = parts.registry.worker(workerId) ?? { row };
      assertInReach(parts, worker);
      return answer(parts, request, reply, endpoint.id, {
        read: (ask, signal) => readWorkerLog(parts, worker, ask, signal),
        follow: (ask, shown, signal) => followWorkerLog(parts, worker, ask, shown, signal),
      });
    },
  );
  app.get(
    "/pods/:podId/logs",
    route({
      operationId: "getPodLogs",
      summary: "The output of a pod's containers as server-sent events, as it comes",
      tag: "pods",
      names: ["podId"],
      querystring: query,
      reply: Type.String({ description: "Events with an id, and data of source, line and ts." }),
      media: "text/event-stream",
    }),
    async (request, reply) => {
      const pod = await findPod(parts, request.caller, idOf(request, "podId"));
      return answer(parts, request, reply, pod.id, {
        read: (ask, signal) => readEndpointLog(parts, pod, ask, signal),
        follow: (ask, shown, signal) => followEndpointLog(parts, pod, ask, shown, signal),
      });
    },
  );
}

function answer(
  parts: LogRouteParts,
  request: FastifyRequest,
  reply: FastifyReply,
  endpointId: string,
  log: Log,
): Promise<unknown> {
  holdFor(parts, request.caller, reply, (scope) => maySee(scope, endpointId));
  const asked = request.query as Query;
  const ask = askOf(asked, positionOf(request.headers["last-event-id"]));
  const form = eventsOf(asked.source, () => parts.clock.wallNow());
  return followLog(parts, { request, reply, gone: goneOf(reply) }, log, ask, form);
}

function askOf({ tail = "100", since }: Query, after: LinePosition | undefined): LogAsk {
  if (!/^\d{1,4}$/.test(tail) || Number(tail) > 5_000) throw invalid("'tail' must be a whole number from 0 to 5000.");
  const moment = since === undefined ? undefined : momentOf(since, 0);
  if (since !== undefined && (moment === undefined || !/^\d{4}-/.test(since)))
    throw invalid("'since' must be an RFC 3339 time.");
  return {
    tail: moment === undefined ? Number(tail) : limits.logTailMax,
    sinceUs: moment === undefined ? undefined : Math.max(0, Math.floor(moment * 1_000)),
    jobId: undefined,
    after,
    search: { bytesLeft: limits.logSearchBytesMax },
  };
}

/** RFC 3339, to the microsecond: a reader that reconnects goes on after exactly this line. */
const timeOf = (atUs: number): string =>
  `${new Date(Math.floor(atUs / 1_000)).toISOString().slice(0, -1)}${String(atUs % 1_000).padStart(3, "0")}Z`;

/** The position after which a reader goes on; a plain time, too, is one. */
function positionOf(header: string | string[] | undefined): LinePosition | undefined {
  const text = String(header ?? "").slice(0, 100);
  const [, second, micros, workerId = ""] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z(?:\/([a-z0-9]{1,32}))?$/.exec(text) ?? [];
  const at = second === undefined ? Number.NaN : Date.parse(`${second}Z`);
  if (Number.isNaN(at)) return undefined;
  return { atUs: at * 1_000 + Number((micros ?? "").padEnd(6, "0")), workerId };
}

/** Lines of the worker come from its container, notes of ours from the system. */
function eventsOf(source: Query["source"], now: () => number): EventForm {
  const event = (id: string, data: { source: string; line: string; ts: string }) =>
    `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
  const ofLine = ({ atUs, workerId, text }: ShownLine) => {
    const ts = timeOf(atUs);
    return event(`${ts}/${workerId}`, { source: "container", line: text, ts });
  };
  const textsOf = (told: LogEvent): Iterable<string> => {
    if (told.kind === "lines") return source === "system" ? [] : slicesOf("", told.lines, ofLine);
    const ts = timeOf(now() * 1_000);
    return source === "container" ? [] : [`data: ${JSON.stringify({ source: "system", line: told.text, ts })}\n\n`];
  };
  return { textsOf, end: ": the worker has ended\n\n" };
}
