import * as api from "@millrace/api";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import Type from "typebox";
import { type ApiKey, maySee } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { momentOf } from "../../domain/workers/log-line.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { ownEndpoint } from "../../operations/endpoints/save-endpoint.js";
import { noRoom } from "../../operations/jobs/lend-status.js";
import { followEndpointLog, followWorkerLog } from "../../operations/logs/follow-logs.js";
import {
  assertInReach,
  type LinePosition,
  type LogAsk,
  type LogPage,
  readEndpointLog,
  readWorkerLog,
} from "../../operations/logs/read-logs.js";
import { findPod } from "../../operations/pods/save-pod.js";
import { ownWorker } from "../../operations/workers/show-workers.js";
import { turns } from "../../turns.js";
import { holdFor } from "../shared/access.js";
import { followLog, goneOf, type Log, type LogRouteParts, pagesOfLogs } from "../shared/logs/follow-log.js";
import { idOf, params } from "../shared/params.js";
import { sendLentReply } from "../shared/replies/send-lent.js";
import { eventTexts, type Format, formatOf, grouped } from "./log-formats.js";
import { errors } from "./route-schema.js";

type Query = Record<string, string | undefined>;

const query = Type.Object({
  tail: Type.Optional(
    Type.String({
      description: `How many of the last lines to return, 0 to ${limits.logTailMax}; default ${limits.logTailDefault}.`,
    }),
  ),
  since: Type.Optional(
    Type.String({ description: "Lines from then on: an RFC 3339 time, Unix milliseconds, or how long ago (10m)." }),
  ),
  until: Type.Optional(Type.String({ description: "Lines before then; the same forms." })),
  jobId: Type.Optional(Type.String({ description: "Only lines that the worker has marked as this job's." })),
  follow: Type.Optional(
    Type.String({ description: "true: server-sent events, `line` for each line as it comes; Last-Event-ID resumes." }),
  ),
  format: Type.Optional(
    Type.String({ description: "text or ndjson; without it the Accept header decides, and text is the default." }),
  ),
});
const replies = {
  200: {
    description: "Lines, oldest first.",
    content: {
      "text/plain": { schema: Type.String() },
      "application/x-ndjson": { schema: api.LogLine },
      "text/event-stream": { schema: Type.String() },
    },
  },
  ...errors,
  409: api.ErrorBody,
};
const doc = (summary: string, tag: string, name: string) => ({
  schema: {
    summary,
    tags: [tag],
    params: params(name),
    querystring: query,
    response: replies,
  },
});

/** Workers' logs, to read and to follow. */
export function logRoutes(app: FastifyInstance, parts: LogRouteParts): void {
  app.get(
    "/endpoints/:endpointId/logs",
    doc("The merged output of all of an endpoint's workers", "endpoints", "endpointId"),
    async (request, reply) => {
      const endpoint = ownEndpoint(parts, request.caller, idOf(request, "endpointId"));
      return answer(parts, request, reply, endpoint, {
        read: (ask, signal) => readEndpointLog(parts, endpoint, ask, signal),
        follow: (ask, shown, signal) => followEndpointLog(parts, endpoint, ask, shown, signal),
      });
    },
  );
  app.get(
    "/pods/:podId/logs",
    doc("The output of all containers that a pod has had in the last day", "pods", "podId"),
    async (request, reply) => {
      const pod = await findPod(parts, request.caller, idOf(request, "podId"));
      return answer(parts, request, reply, pod, {
        read: (ask, signal) => readEndpointLog(parts, pod, ask, signal),
        follow: (ask, shown, signal) => followEndpointLog(parts, pod, ask, shown, signal),
      });
    },
  );
  app.get(
    "/pod/:podId/logs",
    {
      schema: {
        summary: "The last lines of a worker or pod",
        tags: ["workers"],
        params: params("podId"),
        response: { 200: api.ContainerLogs, ...errors, 409: api.ErrorBody },
      },
    },
    async (request, reply) => {
      const id = idOf(request, "podId");
      const found = await workerOrPod(parts, request.caller, id);
      holdFor(parts, request.caller, reply, (scope) => maySee(scope, found.endpoint.id));
      const ask = { ...askOf({}, parts.clock.now()), tail: limits.logTailGrouped };
      return sendPage(parts, request, reply, grouped, (gone) =>
        found.worker
          ? readWorkerLog(parts, found.worker, ask, gone)
          : readEndpointLog(parts, found.endpoint, ask, gone),
      );
    },
  );
  app.get(
    "/workers/:workerId/logs",
    doc("A worker's output; kept for a day after the worker ends", "workers", "workerId"),
    async (request, reply) => {
      const workerId = idOf(request, "workerId");
      const { row, endpoint } = await ownWorker(parts, request.caller, workerId);
      const worker = parts.registry.worker(workerId) ?? { row };
      assertInReach(parts, worker); // here a refusal can still be a plain reply
      return answer(parts, request, reply, endpoint, {
        read: (ask, signal) => readWorkerLog(parts, worker, ask, signal),
        follow: (ask, shown, signal) => followWorkerLog(parts, worker, ask, shown, signal),
      });
    },
  );
}

async function workerOrPod(parts: LogRouteParts, caller: ApiKey, id: string) {
  const worker = await ownWorker(parts, caller, id).catch((error: unknown) => {
    if (error instanceof Refusal && error.code === "NOT_FOUND") return undefined;
    throw error;
  });
  if (!worker) return { endpoint: await findPod(parts, caller, id) };
  return { endpoint: worker.endpoint, worker: parts.registry.worker(id) ?? { row: worker.row } };
}

async function answer(
  parts: LogRouteParts,
  request: FastifyRequest,
  reply: FastifyReply,
  { id }: Endpoint,
  log: Log,
): Promise<unknown> {
  holdFor(parts, request.caller, reply, (scope) => maySee(scope, id));
  const asked = request.query as Query;
  const ask = askOf(asked, parts.clock.now());
  const format = formatOf(asked.format, request.headers.accept);
  const isFollowed = followOf(asked.follow) ?? /\btext\/event-stream\b/.test(request.headers.accept ?? "");
  if (!isFollowed) return sendPage(parts, request, reply, format, (gone) => log.read(ask, gone));
  return followLog(
    parts,
    { request, reply, gone: goneOf(reply) },
    log,
    { ...ask, after: positionOf(request.headers["last-event-id"]) },
    { textsOf: eventTexts, end: "event: end\ndata: {}\n\n" },
  );
}

/** Sends the lines that `read` finds, within what all readers of logs may hold together. */
async function sendPage(
  parts: LogRouteParts,
  request: FastifyRequest,
  reply: FastifyReply,
  format: Format,
  read: (gone: AbortSignal) => Promise<LogPage>,
): Promise<unknown> {
  const gone = goneOf(reply);
  const share = await parts.streamShares.ask(request.caller.ownerNo, limits.logReplyBytesMax, gone);
  if (!share && !gone.aborted) throw noRoom();
  try {
    const pieces = await pagesOfLogs.do(request.caller.ownerNo, async () =>
      gone.aborted ? [] : piecesOf(request, format, await read(gone)),
    );
    share?.keep(pieces.reduce((sum, { length }) => sum + length, 0));
    if (gone.aborted) return reply.hijack();
    const page = { pieces, release: () => share?.release(), isWanted: () => parts.streamShares.isWanted };
    return await sendLentReply(parts, reply, page, format.type);
  } finally {
    share?.release();
  }
}

/** A page's bytes, made a slice at a time in turns with other work. */
async function piecesOf({ caller }: FastifyRequest, format: Format, page: LogPage): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  for (const text of format.textsOf(page)) {
    if (turns.isOver) await turns.take([caller.ownerNo]);
    pieces.push(Buffer.from(text));
  }
  return pieces;
}

function askOf({ tail, since, until, jobId }: Query, now: number): LogAsk {
  if (tail !== undefined && (!/^\d{1,5}$/.test(tail) || Number(tail) > limits.logTailMax))
    throw invalid(`'tail' must be a whole number from 0 to ${limits.logTailMax}.`);
  if (jobId !== undefined && !/^[\x21-\x7e]{1,128}$/.test(jobId)) throw invalid("'jobId' must be the id of a job.");
  return {
    tail: tail === undefined ? limits.logTailDefault : Number(tail),
    sinceUs: microsecondIn("since", since, now),
    untilUs: microsecondIn("until", until, now),
    jobId,
    after: undefined,
    search: { bytesLeft: limits.logSearchBytesMax },
  };
}

function microsecondIn(name: string, given: string | undefined, now: number): number | undefined {
  if (given === undefined) return undefined;
  const moment = momentOf(given, now);
  if (moment !== undefined) return Math.max(0, Math.floor(moment * 1_000));
  const forms = "an RFC 3339 time, Unix milliseconds, or how long ago it was, such as 90s, 10m or 2h";
  throw invalid(`'${name}' must be ${forms}.`);
}

function followOf(follow: string | undefined): boolean | undefined {
  if (follow !== undefined && follow !== "true" && follow !== "false") throw invalid("'follow' must be true or false.");
  return follow === undefined ? undefined : follow === "true";
}

function positionOf(header: string | string[] | undefined): LinePosition | undefined {
  const [, atUs, workerId] = /^(\d{1,16})-([a-z0-9]{1,32})$/.exec(String(header ?? "")) ?? [];
  return atUs === undefined || workerId === undefined ? undefined : { atUs: Number(atUs), workerId };
}
