import { once } from "node:events";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { realTime } from "../../clock.js";
import { routeNotFound } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { type Marks, passedOn } from "../../operations/access/server-marks.js";
import { maskOf } from "../../operations/logs/mask.js";
import { type LogParts, readable } from "../../operations/logs/read-logs.js";
import type { Needs } from "../../operations/needs.js";
import { turns } from "../../turns.js";
import { idOf } from "../shared/params.js";
import { OpenStreams } from "../shared/replies/open-streams.js";
import { goneSignal } from "../shared/replies/replies.js";

/** What other servers need of this one: `logs` are those that this server keeps. */
export interface ServerParts extends Omit<LogParts, "readsLogs">, Needs<"draining"> {
  readonly marks: Marks;
}

type Query = Readonly<Record<string, string | undefined>>;

/**
 * The log of a worker that this server keeps, for other servers: a line of JSON for each, and one that ends a whole log.
 * The server that asks has checked the caller's key, and hangs up when that ends; its mark is all that lets it in.
 */
export function logRoute(app: FastifyInstance, parts: ServerParts): void {
  const readers = new OpenStreams({
    most: limits.logsForServersMax,
    perOwner: limits.logsForServersPerOwner,
    refusal: "Too many logs are being read for other servers.",
  });
  app.get("/servers/logs/:workerId", async (request, reply) => {
    const workerId = idOf(request, "workerId");
    const worker = isMarked(parts, request, workerId) ? await found(parts, workerId) : undefined;
    const endpoint = worker && parts.registry.endpointByNo(worker.row.endpointNo);
    if (!worker || !endpoint) throw routeNotFound(request.method, request.url);
    const leave = readers.admit(endpoint.ownerNo);
    const over = new AbortController();
    const end = () => over.abort();
    const gone = goneSignal(reply);
    for (const signal of [gone, parts.draining]) {
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    }
    const { raw } = reply.hijack();
    raw.writeHead(200, { "content-type": "application/x-ndjson; charset=utf-8", "x-request-id": request.id });
    raw.flushHeaders();
    const stillHere = realTime.every(limits.sseKeepAliveMs, () => raw.writableNeedDrain || raw.write("\n"));
    const write = async (text: string) => {
      if (over.signal.aborted || raw.write(text)) return;
      const stalled = realTime.abortAfter(limits.readerStallMs);
      await once(raw, "drain", { signal: AbortSignal.any([over.signal, stalled]) });
    };
    const query = queryOf(request.query as Query, over.signal);
    const mask = maskOf(worker);
    try {
      for await (const batch of readable(parts.logs(workerId, worker.row.handle, query))) {
        for (const { workerId, atUs, stream, text } of await mask.shown(parts, batch)) {
          if (turns.isOver) await turns.take(lane);
          await write(`${JSON.stringify({ workerId, atUs, stream, text })}\n`);
        }
        if (over.signal.aborted) break;
      }
      if (!over.signal.aborted) raw.write(`${JSON.stringify({ bytesLeft: query.search?.bytesLeft ?? 0 })}\n`);
      raw.end();
    } catch {
      raw.destroy(); // the other server says that the log is not whole
    } finally {
      realTime.cancel(stillHere);
      parts.draining.removeEventListener("abort", end);
      leave();
    }
    return raw;
  });
}

const lane = ["logs"] as const;

function isMarked({ marks }: ServerParts, { headers, method, url }: FastifyRequest, target: string): boolean {
  const mark = headers[passedOn];
  return typeof mark === "string" && marks.accept(mark, { target, method, url });
}

async function found({ registry }: ServerParts, workerId: string) {
  const known = registry.worker(workerId);
  if (known) return known;
  const row = await registry.workerListed(workerId);
  return row && { row };
}

function queryOf({ tail, sinceUs, untilUs, jobId, follow, bytes }: Query, signal: AbortSignal) {
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  return {
    tail: number(tail),
    sinceUs: number(sinceUs),
    untilUs: number(untilUs),
    jobId,
    follow: follow === "true",
    search: bytes === undefined ? undefined : { bytesLeft: Math.min(Number(bytes), limits.logSearchBytesMax) },
    signal,
  };
}
