import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { limits } from "../../limits/index.js";
import { turns } from "../../turns.js";

const lane = ["bodies"] as const;

/**
 * A request's body on its way to a worker, at the worker's pace. The request itself is not passed: a consumer that is
 * done destroys its body, which would close the client's connection before the reply is written.
 */
export class PassingBody extends Readable {
  readonly #request: IncomingMessage;
  /** Whether a part is waiting for its turn. Until then the request is paused. */
  #isHeld = false;
  #hasEnded = false;
  readonly #end = () => {
    this.#hasEnded = true;
    if (!this.#isHeld) this.push(null);
  };
  readonly #close = () => {
    if (!this.#request.readableEnded) this.destroy(new Error("the client has gone"));
  };

  constructor(request: IncomingMessage) {
    super({ highWaterMark: 64 * 1_024 });
    this.#request = request;
    this.on("error", () => {}); // the consumer may have finished when the client disconnects
    request
      .on("data", this.#hear)
      .once("end", this.#end)
      .once("close", this.#close)
      .on("error", () => {});
    request.pause();
  }

  override _read(): void {
    if (!this.#isHeld) this.#request.resume();
  }

  readonly #hear = (part: Buffer): void => {
    const turn = turns.take(lane);
    if (turn === undefined) {
      if (!this.push(part)) this.#request.pause();
      return;
    }
    this.#isHeld = true;
    this.#request.pause();
    void turn.then(() => {
      this.#isHeld = false;
      if (this.destroyed) return;
      if (this.push(part)) this.#request.resume();
      if (this.#hasEnded) this.push(null); // the request ended while its last part waited
    });
  };

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#request.off("data", this.#hear).off("end", this.#end).off("close", this.#close);
    this.#request.pause();
    done(error);
  }
}

/** Idempotent methods: repeating one has the same effect as sending it once (RFC 9110, 9.2.2). */
export const isIdempotent = (method: string): boolean =>
  ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND", "SEARCH", "REPORT"].includes(method);

/** Whether a request has a body, by its headers. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** Whether the body may be buffered here: if it is small, may be sent twice, and arrives without `100-continue`. */
export function mayBeKept(request: IncomingMessage): boolean {
  const { headers, method = "" } = request;
  if (headers.expect !== undefined) return false;
  const length = Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);
  return hasBody(request) && isIdempotent(method) && length <= limits.gateKeptBytesMax;
}

/** A request's body, buffered before it is sent or opened to be sent as it arrives. */
export class CallBody {
  readonly #request: IncomingMessage;
  readonly #reply: ServerResponse;
  content: Buffer | PassingBody | null = null;

  constructor(request: IncomingMessage, reply: ServerResponse) {
    this.#request = request;
    this.#reply = reply;
  }

  /** The buffered body; null if there is none. */
  get kept(): Buffer | null {
    return this.content instanceof PassingBody ? null : this.content;
  }

  /** Whether there is a body that was not buffered. */
  get isStream(): boolean {
    return this.content instanceof PassingBody || (this.content === null && hasBody(this.#request));
  }

  /** Whether no part of the body has been read yet. */
  get isWhole(): boolean {
    return !(this.content instanceof PassingBody && (this.content.destroyed || this.content.readableDidRead));
  }

  /** The body, opened to be read as it arrives. A client that waits for `100-continue` is told to send it. */
  open(): PassingBody {
    if (this.content instanceof PassingBody) return this.content;
    const { headers, httpVersionMinor } = this.#request;
    if (httpVersionMinor > 0 && headers.expect?.toLowerCase() === "100-continue") this.#reply.writeContinue();
    this.content = new PassingBody(this.#request);
    return this.content;
  }
}
