import type { FastifyReply } from "fastify";
import { PlainSignal, type Signal } from "../../clock.js";
import { errorText, type OpenAiError, serviceStopping } from "../../domain/jobs/openai-error.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../../operations/needs.js";
import { sendJson } from "../shared/replies/replies.js";
import { slicesOf } from "../shared/replies/send-lent.js";
import { turnFor } from "../shared/replies/write-turns.js";

/** A reply that becomes an event stream with its first text. Until then it may still become an error with a status. */
export class EventReply {
  readonly #reply: FastifyReply;
  readonly #needs: Needs<"clock" | "draining" | "shares">;
  readonly #gone: Signal;
  #hasSpoken = false;

  constructor(reply: FastifyReply, needs: Needs<"clock" | "draining" | "shares">, gone: Signal) {
    this.#reply = reply;
    this.#needs = needs;
    this.#gone = gone;
  }

  /** Whether any of the worker's own text has been sent. */
  get hasSpoken(): boolean {
    return this.#hasSpoken;
  }

  /** Sends a comment: without it, clients and proxies give up while a model loads. */
  keepAlive(): Promise<void> {
    return this.#write(": keep-alive\n\n");
  }

  /** Sends the worker's text; resolves when the reader can take more. */
  async speak(text: string): Promise<void> {
    if (text === "") return;
    this.#hasSpoken = true;
    await this.#write(text);
  }

  end(text: string): void {
    if (this.#gone.aborted) return;
    this.#open();
    this.#reply.raw.end(text);
  }

  /** Ends with an error: an error reply, or the last event if the stream has begun. */
  fail(error: OpenAiError, before = ""): void {
    if (this.#gone.aborted) return;
    if (this.#reply.sent) this.end(`${before}data: ${errorText(error)}\n\n`);
    else sendError(this.#reply, error);
  }

  /** Writes long text in slices, so that the reader can show progress and others get their turn. */
  async #write(text: string): Promise<void> {
    if (text.length <= limits.lentWriteBytes) return this.#writeSlice(text);
    for (const slice of slicesOf(text)) {
      await turnFor(slice.length);
      if (this.#gone.aborted) return;
      await this.#writeSlice(slice);
    }
  }

  async #writeSlice(slice: string | Uint8Array): Promise<void> {
    if (this.#gone.aborted) return;
    this.#open();
    const { raw } = this.#reply;
    if (raw.write(slice)) return;
    const awake = new PlainSignal();
    const wake = () => awake.abort();
    const { clock, draining, shares } = this.#needs;
    const ends = [this.#gone, draining];
    raw.once("drain", wake);
    for (const end of ends) end.addEventListener("abort", wake);
    const patienceMs = shares.isWanted ? limits.readerStallWantedMs : limits.readerStallMs;
    if (!draining.aborted) await clock.sleep(patienceMs, awake);
    raw.off("drain", wake);
    for (const end of ends) end.removeEventListener("abort", wake);
    // a reader that has stalled for that long is gone, and a stopping server waits for no reader
    if (raw.writableNeedDrain) raw.destroy();
  }

  #open(): void {
    const reply = this.#reply;
    if (reply.sent) return;
    reply.hijack();
    reply.raw.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    });
  }
}

/** Replies with an error in OpenAI's shape. */
export function sendError(reply: FastifyReply, error: OpenAiError): FastifyReply {
  if (error === serviceStopping) reply.header("retry-after", String(limits.drainRetryAfterSeconds));
  if (error.isLast) reply.header("x-should-retry", "false");
  return sendJson(reply, errorText(error), error.status);
}
