import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { Signal } from "../clock.js";
import type { JobReport } from "../domain/job.js";
import { limits } from "../limits.js";
import { type LentBody, lendStatus, noRoom } from "../operations/lend-status.js";
import type { Needs } from "../operations/needs.js";
import { describeJob } from "../operations/read-job.js";
import { goneSignal, jsonType, sendJson } from "./replies.js";
import { turnFor } from "./write-turns.js";

/** Resolves when a reply is the next one on its connection; false where its client has gone. */
export async function isNextUp(reply: ServerResponse, gone: Signal): Promise<boolean> {
  if (!reply.socket && !gone.aborted) {
    // a pipelined reply has no socket before those ahead of it are sent; what it lent meanwhile would lie idle
    await new Promise<void>((resolve) => {
      reply.once("socket", () => resolve());
      gone.addEventListener("abort", resolve);
    });
  }
  return !gone.aborted;
}

/** What a client has read of a large reply, and how long it kept us waiting. */
class ReaderPace {
  readonly #needs: Needs<"shares" | "clock">;
  #bytes = 0;
  #waitedMs = 0;
  #waitsSince: number | undefined;

  constructor(needs: Needs<"shares" | "clock">) {
    this.#needs = needs;
  }

  /** Waits for the client to take what was written. */
  async taken(bytes: number, drained: Promise<unknown>): Promise<void> {
    const since = this.#needs.clock.now();
    this.#waitsSince = since;
    await drained;
    this.#waitedMs += this.#needs.clock.now() - since;
    this.#waitsSince = undefined;
    this.#bytes += bytes;
  }

  /** Hangs up when the client should give its share back: it reads nothing, or while others wait for room, too slowly. */
  async watch(reply: ServerResponse, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await this.#needs.clock.sleep(limits.readerLookMs, over);
      if (!over.aborted && this.#isStuck) reply.destroy();
    }
  }

  get #isStuck(): boolean {
    if (this.#waitsSince === undefined) return false;
    const waitsMs = this.#needs.clock.now() - this.#waitsSince;
    if (!this.#needs.shares.isWanted) return waitsMs > limits.readerStallMs;
    const patienceMs = limits.readerStallWantedMs + (this.#bytes / limits.readerBytesPerSecondMin) * 1_000;
    return waitsMs > limits.readerStallWantedMs || this.#waitedMs + waitsMs > patienceMs;
  }
}

/**
 * Sends a lent body with back-pressure, a slice at a time, and gives its memory back: when it is sent, when the client goes,
 * or when the client makes no progress. `headers` get the content's length added.
 */
export async function sendLent(
  needs: Needs<"shares" | "clock">,
  reply: ServerResponse,
  headers: readonly string[],
  body: LentBody,
): Promise<void> {
  const pieces = body.pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const over = new AbortController();
  const { signal } = over;
  reply.once("close", () => over.abort());
  const pace = new ReaderPace(needs);
  try {
    if (reply.destroyed || reply.closed) return;
    void pace.watch(reply, signal);
    reply.writeHead(200, [...headers, "content-length", String(bytes)]);
    for (const slice of slicesOf(pieces)) {
      await turnFor(slice.length);
      if (signal.aborted) return;
      if (!reply.write(slice)) await pace.taken(slice.length, once(reply, "drain", { signal }));
    }
    reply.end();
    if (!reply.writableFinished) await pace.taken(0, once(reply, "finish", { signal }));
  } catch {
    reply.destroy(); // its client has gone, or is stuck
  } finally {
    over.abort();
    body.release();
  }
}

function* slicesOf(pieces: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += limits.lentWriteBytes)
      yield piece.subarray(at, at + limits.lentWriteBytes);
  }
}

/** The body as one text where it is small: sent as any other reply. */
function smallText(pieces: LentBody["pieces"]): string | undefined {
  const isSmall = pieces.every((piece) => typeof piece === "string");
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  return isSmall && length <= limits.textReadBytesMax ? pieces.join("") : undefined;
}

/** Sends a lent body by a route's reply, with the headers that were set on it. */
export async function sendLentReply(
  parts: Needs<"shares" | "clock">,
  reply: FastifyReply,
  body: LentBody,
  type = jsonType,
): Promise<FastifyReply> {
  const small = smallText(body.pieces);
  if (small !== undefined) {
    body.release();
    return reply.header("content-type", type).send(small);
  }
  reply.header("content-type", type).hijack();
  const headers = Object.entries(reply.getHeaders()).flatMap(([name, value]) => [name, String(value)]);
  await sendLent(parts, reply.raw, headers, body);
  return reply;
}

/** A text that was made already, counted as lent from now on where it is large. */
export async function lendText(
  { shares }: Needs<"shares">,
  ownerNo: number,
  text: string,
  gone: Signal,
): Promise<LentBody> {
  if (text.length <= limits.textReadBytesMax) return { pieces: [text], release: () => {} };
  const bytes = Buffer.from(text);
  const share = await shares.ask(ownerNo, bytes.length, gone);
  if (!share) throw noRoom();
  return { pieces: [bytes], release: share.release };
}

/** Sends a job's status body: a large one from lent memory. */
export async function sendStatus(
  parts: Parameters<typeof lendStatus>[0] & Needs<"shares">,
  reply: FastifyReply,
  job: JobReport,
  gone: Signal = goneSignal(reply),
): Promise<FastifyReply> {
  const { endpoint } = reply.request;
  if (job.unreadBytes === 0) return sendJson(reply, await describeJob(parts, endpoint, job));
  if (!(await isNextUp(reply.raw, gone))) return reply.hijack();
  return sendLentReply(parts, reply, await lendStatus(parts, endpoint, job, gone));
}
