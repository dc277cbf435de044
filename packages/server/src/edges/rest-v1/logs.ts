import { once } from "node:events";
import * as api from "@millrace/api";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import Type from "typebox";
import { realTime } from "../../clock.js";
import { type ApiKey, maySee } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { FairLine } from "../../domain/fair-line.js";
import { momentOf } from "../../domain/workers/log-line.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { ownEndpoint } from "../../operations/endpoints/save-endpoint.js";
import { noRoom } from "../../operations/jobs/lend-status.js";
import {
  followEndpointLog,
  followWorkerLog,
  type LogEvent,
  positionsOf,
  type Shown,
} from "../../operations/logs/follow-logs.js";
import {
  assertKeptHere,
  type LinePosition,
  type LogAsk,
  type LogPage,
  type LogParts,
  readEndpointLog,
  readWorkerLog,
} from "../../operations/logs/read-logs.js";
import type { Parts } from "../../operations/needs.js";
import { ownWorker } from "../../operations/workers/show-workers.js";
import { turns } from "../../turns.js";
import { holdFor } from "../shared/access.js";
import { idOf, params } from "../shared/params.js";
import { goneSignal } from "../shared/replies/replies.js";
import { sendLentReply } from "../shared/replies/send-lent.js";
import { eventTexts, type Format, formatOf, slicesOf } from "./log-formats.js";
import { errors } from "./route-schema.js";

export type LogRouteParts = Parts & LogParts;
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
    "/workers/:workerId/logs",
    doc("A worker's output; kept for a day after the worker ends", "workers", "workerId"),
    async (request, reply) => {
      const workerId = idOf(request, "workerId");
      const { row, endpoint } = await ownWorker(parts, request.caller, workerId);
      const worker = parts.registry.worker(workerId) ?? { row };
      assertKeptHere(parts, worker); // here a refusal can still be a plain reply
      return answer(parts, request, reply, endpoint, {
        read: (ask, signal) => readWorkerLog(parts, worker, ask, signal),
        follow: (ask, shown, signal) => followWorkerLog(parts, worker, ask, shown, signal),
      });
    },
  );
}

const pagesOfLogs = new FairLine(limits.logReadsMax);

interface Log {
  read(ask: LogAsk, signal: AbortSignal): Promise<LogPage>;
  /** The lines after those that were shown. */
  follow(ask: LogAsk, shown: Shown, signal: AbortSignal): AsyncIterable<LogEvent>;
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
  const gone = goneOf(reply);
  if (isFollowed)
    return follow(parts, request, reply, log, { ...ask, after: positionOf(request.headers["last-event-id"]) }, gone);
  const share = await parts.streamShares.ask(request.caller.ownerNo, limits.logReplyBytesMax, gone);
  if (!share && !gone.aborted) throw noRoom();
  try {
    const pieces = await pagesOfLogs.do(request.caller.ownerNo, async () =>
      gone.aborted ? [] : piecesOf(request, format, await log.read(ask, gone)),
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
async function piecesOf({ caller }: FastifyRequest, format: Format, { lines, note }: LogPage): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  for (const text of slicesOf(note === undefined ? "" : format.note(note), lines, format.line)) {
    await turns.take([caller.ownerNo]);
    pieces.push(Buffer.from(text));
  }
  return pieces;
}

function askOf({ tail, since, jobId }: Query, now: number): LogAsk {
  if (tail !== undefined && (!/^\d{1,5}$/.test(tail) || Number(tail) > limits.logTailMax))
    throw invalid(`'tail' must be a whole number from 0 to ${limits.logTailMax}.`);
  const moment = since === undefined ? undefined : momentOf(since, now);
  if (since !== undefined && moment === undefined)
    throw invalid(
      "'since' must be an RFC 3339 time, Unix milliseconds, or how long ago it was, such as 90s, 10m or 2h.",
    );
  if (jobId !== undefined && !/^[\x21-\x7e]{1,128}$/.test(jobId)) throw invalid("'jobId' must be the id of a job.");
  return {
    tail: tail === undefined ? limits.logTailDefault : Number(tail),
    sinceUs: moment === undefined ? undefined : Math.max(0, Math.floor(moment * 1_000)),
    jobId,
    after: undefined,
    search: { bytesLeft: limits.logSearchBytesMax },
  };
}

function followOf(follow: string | undefined): boolean | undefined {
  if (follow !== undefined && follow !== "true" && follow !== "false") throw invalid("'follow' must be true or false.");
  return follow === undefined ? undefined : follow === "true";
}

/** Aborts when the client has gone. */
function goneOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const told = goneSignal(reply);
  told.addEventListener("abort", () => gone.abort());
  if (told.aborted) gone.abort(); // the client may have gone while its key or the worker was looked up
  return gone.signal;
}

// following

let followers = 0;
const followersOf = new Map<number, number>();

/** Counts a follower; the returned function removes it again. */
function admitFollower({ ownerNo }: ApiKey): () => void {
  const own = followersOf.get(ownerNo) ?? 0;
  if (followers >= limits.logFollowersMax || own >= limits.logFollowersPerOwner) {
    throw new Refusal("UNAVAILABLE", "Too many logs are being followed; end one, or read this one without follow.", {
      retryAfterSeconds: 5,
    });
  }
  followers++;
  followersOf.set(ownerNo, own + 1);
  return () => {
    followers--;
    const left = (followersOf.get(ownerNo) ?? 1) - 1;
    if (left > 0) followersOf.set(ownerNo, left);
    else followersOf.delete(ownerNo);
  };
}

function positionOf(header: string | string[] | undefined): LinePosition | undefined {
  const [, atUs, workerId] = /^(\d{1,16})-([a-z0-9]{1,32})$/.exec(String(header ?? "")) ?? [];
  return atUs === undefined || workerId === undefined ? undefined : { atUs: Number(atUs), workerId };
}

async function follow(
  parts: LogRouteParts,
  request: FastifyRequest,
  reply: FastifyReply,
  log: Log,
  ask: LogAsk,
  gone: AbortSignal,
): Promise<unknown> {
  if (gone.aborted) return reply.hijack();
  const leave = admitFollower(request.caller);
  const over = new AbortController();
  const end = () => over.abort();
  gone.addEventListener("abort", end);
  parts.draining.addEventListener("abort", end);
  if (gone.aborted || parts.draining.aborted) end();
  const { raw } = reply.hijack();
  raw.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-content-type-options": "nosniff",
    "x-request-id": request.id,
    "x-accel-buffering": "no",
  });
  raw.flushHeaders();
  const stillHere = realTime.every(limits.sseKeepAliveMs, () => raw.writableNeedDrain || raw.write(": still here\n\n"));
  const write = async (event: LogEvent) => {
    for (const text of eventTexts(event)) {
      await turns.take([request.caller.ownerNo]);
      if (over.signal.aborted) return;
      if (raw.write(text)) continue;
      // a reader that takes nothing for long is gone; it frees its place
      const stallMs = parts.streamShares.isWanted ? limits.readerStallWantedMs : limits.readerStallMs;
      const stalled = realTime.abortAfter(stallMs);
      await once(raw, "drain", { signal: AbortSignal.any([over.signal, stalled]) });
    }
  };
  try {
    const shown = await showFirst(parts, request, log, ask, write, over.signal);
    const rest = { ...ask, search: { bytesLeft: limits.logSearchBytesMax } };
    for await (const event of log.follow(rest, shown, over.signal)) {
      if (over.signal.aborted) break;
      await write(event);
    }
    if (!over.signal.aborted) raw.write("event: end\ndata: {}\n\n");
    raw.end();
  } catch {
    // the log cannot be read now, or the reader has gone: a new request resumes where this one ended
    raw.destroy();
  } finally {
    realTime.cancel(stillHere);
    parts.draining.removeEventListener("abort", end);
    leave();
  }
  return raw;
}

/** Writes the lines that are there already, in borrowed memory: a thousand long lines take as much as a page of them. */
async function showFirst(
  parts: LogRouteParts,
  { caller }: FastifyRequest,
  log: Log,
  ask: LogAsk,
  write: (event: LogEvent) => Promise<void>,
  signal: AbortSignal,
): Promise<Shown> {
  if (ask.tail === 0 && !ask.after) return positionsOf([]);
  const share = await parts.streamShares.ask(caller.ownerNo, limits.logReplyBytesMax, signal);
  if (!share) throw noRoom();
  try {
    const { lines, note } = await pagesOfLogs.do(
      caller.ownerNo,
      async (): Promise<LogPage> => (signal.aborted ? { lines: [] } : log.read(ask, signal)),
    );
    share.keep(lines.reduce((sum, { text }) => sum + 2 * text.length, 0));
    if (note !== undefined) await write({ kind: "note", text: note });
    if (lines.length > 0) await write({ kind: "lines", lines });
    return positionsOf(lines);
  } finally {
    share.release();
  }
}
