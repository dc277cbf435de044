import { once } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import { statusText } from "../../domain/status-text.js";
import { limits } from "../../limits.js";
import type { Chunk, Parts } from "../../operations/needs.js";
import { findJob } from "../../operations/read-job.js";
import { followStream, readStream, type StreamEvent } from "../../operations/read-stream.js";
import { goneSignal, isGone, sendJson, wasWritten } from "../replies.js";
import { readClamped } from "../wait.js";

/** A chunk as the contract has it: the worker's metrics, and `stream_index`. */
function chunkText(chunk: Chunk): string {
  const rest = chunk.metrics === undefined ? "" : chunk.metrics.trim().slice(1, -1).trim();
  return `{"output":${chunk.output},"metrics":{${rest}${rest ? "," : ""}"stream_index":${chunk.index}}}`;
}

/** `/stream`: an array (or the envelope that public clients read), or server-sent events for who accepts them. */
export function streamRoute(parts: Parts, envelope: boolean) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { jobId } = request.params as { jobId: string };
    if (/\btext\/event-stream\b/.test(request.headers.accept ?? "")) return sendEvents(parts, request, reply, jobId);
    const asked = (request.query as { wait?: string }).wait;
    const waitMs = readClamped(asked, limits.streamHoldMs, 0, limits.streamHoldMsMax);
    const gone = goneSignal(reply);
    const { job, chunks, status } = await readStream(parts, request.endpoint, jobId, waitMs, gone);
    if (gone.aborted || isGone(reply)) {
      await parts.chunks.handBack(job.no, chunks);
      return reply.hijack();
    }
    reply.raw.once("close", () => {
      // a reply that could not be written gives its chunks back
      if (!wasWritten(reply)) void parts.chunks.handBack(job.no, chunks);
    });
    const array = `[${chunks.map(chunkText).join(",")}]`;
    return sendJson(reply, envelope ? `{"status":"${status}","stream":${array}}` : array);
  };
}

function lastSeen(header: string | string[] | undefined): { start: number; index: number } | undefined {
  const [, start, index] = /^(\d{1,9})-(\d{1,9})$/.exec(String(header ?? "")) ?? [];
  return start === undefined ? undefined : { start: Number(start), index: Number(index) };
}

async function sendEvents(parts: Parts, request: FastifyRequest, reply: FastifyReply, jobId: string): Promise<unknown> {
  await findJob(parts, request.endpoint, jobId); // a refusal is still a plain reply
  const gone = goneSignal(reply);
  const over = new AbortController();
  gone.addEventListener("abort", () => over.abort());
  reply.hijack();
  reply.raw.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-request-id": request.id,
    "x-accel-buffering": "no",
  });
  reply.raw.flushHeaders();
  try {
    const from = lastSeen(request.headers["last-event-id"]);
    for await (const event of followStream(parts, request.endpoint, jobId, from, gone)) {
      if (!reply.raw.write(eventText(parts, event))) await once(reply.raw, "drain", { signal: over.signal });
    }
  } catch {
    // the job vanished, or the reader did: the end of the stream says so
  }
  return reply.raw.end();
}

function eventText(parts: Parts, event: StreamEvent): string {
  switch (event.kind) {
    case "chunk":
      return `event: chunk\nid: ${event.chunk.start}-${event.chunk.index}\ndata: ${oneLine(chunkText(event.chunk))}\n\n`;
    case "status":
      return `event: status\ndata: {"status":"${event.status}"}\n\n`;
    case "done":
      return `event: done\ndata: ${oneLine(statusText(event.job, parts.clock.now()))}\n\n`;
    case "pause":
      return ": still here\n\n";
  }
}

/** JSON text may hold line ends between its tokens (never inside a string): an event's data may not. */
export const oneLine = (text: string) => (/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, " ") : text);
