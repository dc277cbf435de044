import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock, Signal } from "../../../clock.js";
import type { JobReport } from "../../../domain/jobs/job.js";
import { limits } from "../../../limits/index.js";
import { type LentBody, lendStatus } from "../../../operations/jobs/lend-status.js";
import { type Asked, describeJob } from "../../../operations/jobs/read-job.js";
import type { Needs } from "../../../operations/needs.js";
import { turns } from "../../../turns.js";
import { goneSignal, jsonType, sendJson } from "./replies.js";
import { turnFor } from "./write-turns.js";

/** How much of a large reply its client has read, and how long it kept us waiting. */
class ReaderPace {
  readonly #clock: Clock;
  readonly #isWanted: () => boolean;
  #bytes = 0;
  #waitedMs = 0;
  #waitsSince: number | undefined;

  constructor(clock: Clock, isWanted: () => boolean) {
    this.#clock = clock;
    this.#isWanted = isWanted;
  }

  /** Waits until the client has taken the bytes written. */
  async taken(bytes: number, drained: Promise<unknown>): Promise<void> {
    const since = this.#clock.now();
    this.#waitsSince = since;
    await drained;
    this.#waitedMs += this.#clock.now() - since;
    this.#waitsSince = undefined;
    this.#bytes += bytes;
  }

  /**
   * Disconnects a client that should give its share back: it reads nothing, or too slowly while others wait for memory.
   */
  async watch(reply: ServerResponse, over: AbortController): Promise<void> {
    while (!over.signal.aborted) {
      await this.#clock.sleep(limits.readerLookMs, over.signal);
      if (over.signal.aborted || !this.#isStuck) continue;
      reply.destroy();
      over.abort(); // a reply without a socket never emits its end
    }
  }

  get #isStuck(): boolean {
    if (this.#waitsSince === undefined) return false;
    const waitsMs = this.#clock.now() - this.#waitsSince;
    if (!this.#isWanted()) return waitsMs > limits.readerStallMs;
    const patienceMs = limits.readerStallWantedMs + (this.#bytes / limits.readerBytesPerSecondMin) * 1_000;
    return waitsMs > limits.readerStallWantedMs || this.#waitedMs + waitsMs > patienceMs;
  }
}

/** A body in pieces: all at hand, or made while they are sent. */
export type Pieces = LentBody["pieces"] | AsyncIterable<string | Uint8Array>;

/** A lent body whose pieces may be made while they are sent. */
type SentBody = Omit<LentBody, "pieces"> & { readonly pieces: Pieces };

/**
 * Writes the pieces of a lent body with backpressure, a slice at a time; `as` transforms each slice. Throws if the
 * client goes away or makes no progress. The caller must release the body's memory.
 */
export async function writeLent(
  { clock }: Needs<"clock">,
  reply: ServerResponse,
  { pieces, isWanted }: Omit<SentBody, "release">,
  { as = (slice) => slice, isLast = false }: { as?: (slice: Uint8Array) => Uint8Array; isLast?: boolean } = {},
): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  const end = () => over.abort();
  reply.once("close", end);
  const pace = new ReaderPace(clock, isWanted);
  try {
    if (reply.destroyed || reply.closed) throw new Error("the client has gone");
    void pace.watch(reply, over);
    for await (const piece of pieces) {
      for (const slice of slicesOf(piece)) {
        await turnFor(slice.length);
        signal.throwIfAborted();
        if (!reply.write(as(slice))) await pace.taken(slice.length, once(reply, "drain", { signal }));
      }
    }
    if (!isLast) return;
    reply.end();
    if (!reply.writableFinished) await pace.taken(0, once(reply, "finish", { signal }));
  } finally {
    reply.off("close", end);
    over.abort();
  }
}

const encoder = new TextEncoder();

/** The slices handed to a socket one at a time. A string, too, is encoded only one slice at a time. */
export function* slicesOf(piece: string | Uint8Array): Generator<Uint8Array> {
  const size = limits.lentWriteBytes;
  if (typeof piece !== "string") {
    for (let at = 0; at < piece.length; at += size) yield piece.subarray(at, at + size);
    return;
  }
  for (let at = 0; at < piece.length; ) {
    const rest = piece.slice(at);
    const slice = new Uint8Array(Math.min(size, 3 * rest.length));
    const { read, written } = encoder.encodeInto(rest, slice);
    at += read;
    yield slice.subarray(0, written);
  }
}

/**
 * Sends a lent body and releases its memory, whether it is sent, the client goes away, or the client makes no progress.
 * If a piece cannot be made, the reply is cut short and the reason is logged. The content's length is added to
 * `headers` if known.
 */
export async function sendLent(
  needs: Needs<"clock" | "emit">,
  reply: ServerResponse,
  headers: readonly string[],
  body: SentBody,
  status = 200,
): Promise<void> {
  try {
    if (reply.destroyed || reply.closed) return;
    reply.writeHead(status, [...headers, ...lengthOf(body.pieces)]);
    await writeLent(needs, reply, body, { isLast: true });
  } catch (error) {
    // a gone or stuck client was disconnected above; if it is still there, a piece could not be made
    if (!reply.destroyed) needs.emit({ type: "server.warning", message: "a reply was cut short", error });
    reply.destroy();
  } finally {
    body.release();
  }
}

function lengthOf(pieces: Pieces): string[] {
  if (!Array.isArray(pieces)) return [];
  return ["content-length", String(pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0))];
}

/** A small body as one string, which needs no backpressure; undefined for a large one. */
function smallText(pieces: Pieces): string | undefined {
  if (!Array.isArray(pieces)) return undefined;
  const isSmall = pieces.every((piece) => typeof piece === "string");
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  return isSmall && length <= limits.textReadBytesMax ? pieces.join("") : undefined;
}

/** Sends a lent body as a route's reply, with the headers set on that reply. */
export async function sendLentReply(
  parts: Needs<"clock" | "emit">,
  reply: FastifyReply,
  body: SentBody,
  type = jsonType,
): Promise<FastifyReply> {
  const small = smallText(body.pieces);
  if (small !== undefined) {
    body.release();
    return reply.header("content-type", type).send(small);
  }
  reply.header("content-type", type).hijack();
  const headers = Object.entries(reply.getHeaders()).flatMap(([name, value]) => [name, String(value)]);
  await sendLent(parts, reply.raw, headers, body, reply.statusCode);
  return reply;
}

/** Whose jobs a request asks for. */
export const askedIn = ({ endpoint, caller }: FastifyRequest): Asked => ({ endpoint, scope: caller.scope });

/** Sends a job's status body, a large one from borrowed memory. */
export async function sendStatus(
  parts: Parameters<typeof lendStatus>[0] & Needs<"emit">,
  reply: FastifyReply,
  job: JobReport,
  gone: Signal = goneSignal(reply),
): Promise<FastifyReply> {
  const asked = askedIn(reply.request);
  if (job.unreadBytes === 0) {
    if (turns.isOver) await turns.take([asked.endpoint.ownerNo, asked.endpoint.no]); // thousands may wait for one job
    return sendJson(reply, await describeJob(parts, asked, job));
  }
  return sendLentReply(parts, reply, await lendStatus(parts, asked, job, gone));
}
