import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { realTime } from "../../clock.js";
import { statusText } from "../../domain/jobs/status-text.js";
import { oneLine } from "../../domain/plain-text.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { type LentBody, lendStatus } from "../../operations/jobs/lend-status.js";
import { findJob } from "../../operations/jobs/read-job.js";
import { followStream, readStream, type StreamEvent } from "../../operations/jobs/read-stream.js";
import type { Chunk, Parts } from "../../operations/needs.js";
import { type Lane, turns } from "../../turns.js";
import { goneSignal, isGone, refusalText, wasWritten } from "../shared/replies/replies.js";
import { askedIn, sendLentReply, writeLent } from "../shared/replies/send-lent.js";
import { readClamped } from "../shared/wait.js";

/**
 * A chunk in the contract's form, with the worker's metrics and `stream_index`. A large output stays a separate piece.
 */
function chunkPieces({ output, metrics, index }: Chunk): (string | Uint8Array)[] {
  const rest = metrics === undefined ? "" : metrics.trim().slice(1, -1).trim();
  const behind = `,"metrics":{${rest}${rest ? "," : ""}"stream_index":${index}}}`;
  return typeof output === "string" ? [`{"output":${output}${behind}`] : ['{"output":', output, behind];
}

/**
 * `/stream`: an array, or the envelope that public clients read, or server-sent events for clients that accept them.
 */
export function streamRoute(parts: Parts, envelope: boolean) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { jobId } = request.params as { jobId: string };
    if (/\btext\/event-stream\b/.test(request.headers.accept ?? "")) return sendEvents(parts, request, reply, jobId);
    const asked = (request.query as { wait?: string }).wait;
    const waitMs = readClamped(asked, limits.streamHoldMs, 0, limits.streamHoldMsMax);
    const gone = goneSignal(reply);
    const { job, chunks, status, lent } = await readStream(parts, request.endpoint, jobId, waitMs, gone);
    if (gone.aborted || isGone(reply)) {
      lent.release();
      await parts.chunks.handBack({ jobNo: job.no, chunks });
      return reply.hijack();
    }
    reply.raw.once("close", () => {
      // if the reply could not be written, its chunks go back
      if (!wasWritten(reply)) parts.chunks.handBack({ jobNo: job.no, chunks }).catch(notGivenBack);
    });
    const notGivenBack = (error: unknown) =>
      parts.emit({ type: "server.warning", message: "chunks that could not be sent were not given back", error });
    const texts = chunks.flatMap((chunk, n) => (n === 0 ? chunkPieces(chunk) : [",", ...chunkPieces(chunk)]));
    const [before, behind] = envelope ? [`{"status":"${status}","stream":[`, "]}"] : ["[", "]"];
    const { release, isWanted } = { release: () => lent.release(), isWanted: () => lent.isWanted() };
    return sendLentReply(parts, reply, { pieces: [before, ...texts, behind], release, isWanted });
  };
}

function lastSeen(header: string | string[] | undefined): { start: number; index: number } | undefined {
  const [, start, index] = /^(\d{1,9})-(\d{1,9})$/.exec(String(header ?? "")) ?? [];
  return start === undefined ? undefined : { start: Number(start), index: Number(index) };
}

async function sendEvents(parts: Parts, request: FastifyRequest, reply: FastifyReply, jobId: string): Promise<unknown> {
  const lane = [request.endpoint.ownerNo, request.endpoint.no] as const;
  await findJob(parts, request.endpoint, jobId); // here a refusal can still be a plain reply
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
      if (turns.isOver) await turns.take(lane);
      if (event.kind === "chunks") await writeChunks(parts, lane, reply.raw, event.chunks, over.signal);
      else await writeEvent(parts, reply, event, over.signal);
    }
  } catch (error) {
    // After any other failure than the job's deletion, the client should reconnect with Last-Event-ID.
    if (!(error instanceof Refusal) || error.code !== "JOB_NOT_FOUND") reply.raw.destroy();
    else reply.raw.write(`event: gone\ndata: ${refusalText(error, request.id)}\n\n`);
  }
  return reply.raw.end();
}

/** Writes an event and waits until the reader can take more; a reader that takes nothing for long is gone. */
async function writeEvent(
  parts: Parts,
  { raw, request }: FastifyReply,
  event: Exclude<StreamEvent, { kind: "chunks" }>,
  over: AbortSignal,
): Promise<void> {
  if (event.kind !== "done" || event.job.unreadBytes === 0) return writeText(raw, eventText(parts, event), over);
  const body = await lendStatus(parts, askedIn(request), event.job, over);
  try {
    await writeData(parts, raw, "event: done\n", body);
  } finally {
    body.release();
  }
}

/**
 * Writes chunks, an event each. Small ones come by the thousand: they are written together, since a write costs more
 * than they do. A large one is written in slices that take turns with other large replies.
 */
async function writeChunks(
  parts: Parts,
  lane: Lane,
  raw: ServerResponse,
  chunks: readonly Chunk[],
  over: AbortSignal,
): Promise<void> {
  let text = "";
  const flush = async () => {
    const events = text;
    text = "";
    if (events === "") return;
    await writeText(raw, events, over);
    if (turns.isOver) await turns.take(lane);
  };
  for (const chunk of chunks) {
    const pieces = chunkPieces(chunk);
    const [json] = pieces;
    const head = `event: chunk\nid: ${chunk.start}-${chunk.index}\n`;
    if (pieces.length === 1 && typeof json === "string" && json.length <= limits.chunkTextBytesMax) {
      text += `${head}data: ${oneLine(json)}\n\n`;
      if (text.length >= limits.eventsTextBytes) await flush();
    } else {
      await flush();
      await writeData(parts, raw, head, { pieces, isWanted: () => parts.streamShares.isWanted });
    }
  }
  await flush();
}

async function writeText(raw: ServerResponse, text: string, over: AbortSignal): Promise<void> {
  if (raw.write(text)) return;
  await once(raw, "drain", { signal: AbortSignal.any([over, realTime.abortAfter(limits.readerStallMs)]) });
}

async function writeData(
  parts: Parts,
  raw: ServerResponse,
  head: string,
  body: Omit<LentBody, "release">,
): Promise<void> {
  raw.write(`${head}data: `);
  await writeLent(parts, raw, body, { as: oneLineOf });
  raw.write("\n\n");
}

function eventText(parts: Parts, event: Exclude<StreamEvent, { kind: "chunks" }>): string {
  switch (event.kind) {
    case "status":
      return `event: status\ndata: {"status":"${event.status}"}\n\n`;
    case "done":
      return `event: done\ndata: ${oneLine(statusText(event.job, parts.clock.now()))}\n\n`;
    case "pause":
      return ": still here\n\n";
  }
}

const isLineEnd = (byte: number) => byte === 0x0a || byte === 0x0d;

/** Like `oneLine`, for bytes that others may be reading too. */
const oneLineOf = (slice: Uint8Array): Uint8Array =>
  slice.includes(0x0a) || slice.includes(0x0d) ? slice.map((byte) => (isLineEnd(byte) ? 0x20 : byte)) : slice;
