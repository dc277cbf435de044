import { once } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import { realTime } from "../../../clock.js";
import { FairLine } from "../../../domain/fair-line.js";
import { limits } from "../../../limits/index.js";
import { noRoom } from "../../../operations/jobs/lend-status.js";
import { type LogEvent, positionsOf, type Shown } from "../../../operations/logs/follow-logs.js";
import type { LogAsk, LogPage, LogParts } from "../../../operations/logs/read-logs.js";
import type { Parts } from "../../../operations/needs.js";
import { turns } from "../../../turns.js";
import { beginEvents, OpenStreams } from "../replies/open-streams.js";
import { goneSignal } from "../replies/replies.js";

export type LogRouteParts = Parts & LogParts;

/** Pages of logs, read a few at a time for all callers. */
export const pagesOfLogs = new FairLine(limits.logReadsMax);

export interface Log {
  read(ask: LogAsk, signal: AbortSignal): Promise<LogPage>;
  /** The lines after those that were shown. */
  follow(ask: LogAsk, shown: Shown, signal: AbortSignal): AsyncIterable<LogEvent>;
}

/** A request that follows a log, and what aborts when its client has gone. */
export interface Following {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly gone: AbortSignal;
}

/** How events are written, a slice at a time, and what is written when the log has ended. */
export interface EventForm {
  readonly textsOf: (event: LogEvent) => Iterable<string>;
  readonly end: string;
}

/** Aborts when the client has gone. */
export function goneOf(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const told = goneSignal(reply);
  told.addEventListener("abort", () => gone.abort());
  if (told.aborted) gone.abort(); // the client may have gone while its key or the worker was looked up
  return gone.signal;
}

const followers = new OpenStreams({
  most: limits.logFollowersMax,
  perOwner: limits.logFollowersPerOwner,
  refusal: "Too many logs are being followed; end one, or read this one without follow.",
});

/**
 * Sends a log as server-sent events: first the lines that are there already, then new ones as they come, at the pace of
 * its reader.
 */
export async function followLog(
  parts: LogRouteParts,
  { request, reply, gone }: Following,
  log: Log,
  ask: LogAsk,
  { textsOf, end: farewell }: EventForm,
): Promise<unknown> {
  if (gone.aborted) return reply.hijack();
  const leave = followers.admit(request.caller.ownerNo);
  const over = new AbortController();
  const end = () => over.abort();
  gone.addEventListener("abort", end);
  parts.draining.addEventListener("abort", end);
  if (gone.aborted || parts.draining.aborted) end();
  const raw = beginEvents(reply);
  const stillHere = realTime.every(limits.sseKeepAliveMs, () => raw.writableNeedDrain || raw.write(": still here\n\n"));
  const write = async (event: LogEvent) => {
    for (const text of textsOf(event)) {
      if (turns.isOver) await turns.take([request.caller.ownerNo]);
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
    if (!over.signal.aborted) raw.write(farewell);
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
  const begunUs = parts.clock.now() * 1_000;
  if (ask.tail === 0 && !ask.after) return positionsOf({ lines: [] }, begunUs);
  const share = await parts.streamShares.ask(caller.ownerNo, limits.logReplyBytesMax, signal);
  if (!share) throw noRoom();
  try {
    const page = await pagesOfLogs.do(
      caller.ownerNo,
      async (): Promise<LogPage> => (signal.aborted ? { lines: [] } : log.read(ask, signal)),
    );
    const { lines, note } = page;
    share.keep(lines.reduce((sum, { text }) => sum + 2 * text.length, 0));
    if (note !== undefined) await write({ kind: "note", text: note });
    if (lines.length > 0) await write({ kind: "lines", lines });
    return positionsOf(page, begunUs);
  } finally {
    share.release();
  }
}
