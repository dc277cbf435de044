import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { Refusal } from "../../../errors.js";

interface Bounds {
  readonly most: number;
  readonly perOwner: number;
  /** What a caller is told who finds no place. */
  readonly refusal: string;
}

/** The streams of one kind that stay open, bounded together and for each owner. */
export class OpenStreams {
  readonly #bounds: Bounds;
  readonly #of = new Map<number, number>(); // by owner
  #all = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Counts a stream; the returned function removes it again. Throws a {@link Refusal} if there is no place. */
  admit(ownerNo: number): () => void {
    const own = this.#of.get(ownerNo) ?? 0;
    if (this.#all >= this.#bounds.most || own >= this.#bounds.perOwner)
      throw new Refusal("UNAVAILABLE", this.#bounds.refusal, { retryAfterSeconds: 5 });
    this.#all++;
    this.#of.set(ownerNo, own + 1);
    return () => {
      this.#all--;
      const left = (this.#of.get(ownerNo) ?? 1) - 1;
      if (left > 0) this.#of.set(ownerNo, left);
      else this.#of.delete(ownerNo);
    };
  }
}

/** Takes a reply over for server-sent events, and sends its head. */
export function beginEvents(reply: FastifyReply): ServerResponse {
  const { raw, request } = reply.hijack();
  raw.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-content-type-options": "nosniff",
    "x-request-id": request.id,
    "x-accel-buffering": "no",
  });
  raw.flushHeaders();
  return raw;
}
