import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";

/**
 * A request's body on its way to a worker, at the worker's pace. The request itself is not passed: a consumer that is
 * done destroys its body, which would close the client's connection before the reply is written.
 */
export class PassingBody extends Readable {
  readonly #request: IncomingMessage;
  readonly #hear: (part: Buffer) => void;
  readonly #end = () => void this.push(null);
  readonly #close = () => {
    if (!this.#request.readableEnded) this.destroy(new Error("the client has gone"));
  };

  constructor(request: IncomingMessage) {
    super({ highWaterMark: 64 * 1_024 });
    this.#request = request;
    this.on("error", () => {}); // its consumer may be done with it when the client goes
    this.#hear = (part) => {
      if (!this.push(part)) request.pause();
    };
    request
      .on("data", this.#hear)
      .once("end", this.#end)
      .once("close", this.#close)
      .on("error", () => {});
    request.pause();
  }

  override _read(): void {
    this.#request.resume();
  }

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
