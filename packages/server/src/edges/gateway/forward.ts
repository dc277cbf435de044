import type { ServerResponse } from "node:http";
import type { Dispatcher } from "undici";
import { limits } from "../../limits/index.js";
import { turnFor } from "../shared/replies/write-turns.js";
import type { PassingBody } from "./body.js";
import type { Connections } from "./connections.js";
import { replyHeaders } from "./headers.js";

/** What became of a request that was sent to a worker. */
export type Outcome =
  | { readonly kind: "ended" }
  /** Nothing of a reply has come. */
  | { readonly kind: "unanswered"; readonly error: Error }
  /** Its reply broke off: so did the client's. */
  | { readonly kind: "broken" }
  | { readonly kind: "gone" };

export interface Sending {
  readonly method: string;
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer | PassingBody | null;
  /** Until the reply begins, and for each silence in it. */
  readonly silenceMs: number;
}

/** Sends a request on one of a worker's connections and its reply to the client, as it comes; `done` is called once. */
export function forward(
  connections: Connections,
  sending: Sending,
  reply: ServerResponse,
  done: (outcome: Outcome) => void,
): void {
  const client = connections.lend();
  const passage = new Passage(reply, (outcome) => {
    connections.giveBack(client, outcome.kind === "ended");
    done(outcome);
  });
  try {
    client.dispatch(
      {
        method: sending.method as Dispatcher.HttpMethod,
        path: sending.path,
        headers: sending.headers,
        body: sending.body,
        headersTimeout: sending.silenceMs,
        bodyTimeout: sending.silenceMs,
      },
      passage,
    );
  } catch (error) {
    passage.fail(error as Error);
  }
}

/** One reply on its way. */
export class Passage implements Dispatcher.DispatchHandler {
  readonly #reply: ServerResponse;
  readonly #done: (outcome: Outcome) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #hasBegun = false;
  #isOver = false;
  /** The first part of the body, while the head waits for it. */
  #first: Buffer | undefined;
  #isFlushed = false;
  /** What is written next, as one: a part of one byte costs as much as one of a kilobyte. */
  #parts: Buffer[] = [];
  #isSending = false;
  /** All of it has come before any was written: it is written in its turn. */
  #isWhole = false;
  #trailers: string[] = [];
  #stall: NodeJS.Timeout | undefined;
  #informed = 0;

  constructor(reply: ServerResponse, done: (outcome: Outcome) => void) {
    this.#reply = reply;
    this.#done = done;
    reply.on("close", this.#leave);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(gone);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    statusText?: string,
  ): void {
    const raw = (controller.rawHeaders ?? []) as Buffer[];
    if (status < 200) {
      this.#inform(controller, status, raw);
      return;
    }
    try {
      this.#reply.writeHead(status, statusText ?? "", replyHeaders(raw, mayTrail(this.#reply, status)));
    } catch (error) {
      this.#reject(controller, error as Error);
      return;
    }
    this.#hasBegun = true;
    // where its body comes later it goes on alone
    process.nextTick(flush, this);
  }

  onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
    // a small reply mostly comes whole: with its head it is one write, as text it is one with it
    if (!this.#isFlushed && this.#first === undefined && part.length <= limits.gateFirstBytesMax) {
      this.#first = part;
      return;
    }
    this.flush();
    this.#write(controller, part);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#trailers = replyHeaders((controller.rawTrailers ?? []) as Buffer[]);
    if (this.#isFlushed) this.finish();
    else {
      this.#isWhole = true;
      writeSoon(this);
    }
  }

  /** Writes what has not been written, and ends. */
  finish(): void {
    if (this.#isOver) return;
    this.#isWhole = false;
    this.#writeParts();
    if (this.#trailers.length > 0) {
      this.flush();
      if (this.#reply.chunkedEncoding) this.#reply.addTrailers(pairs(this.#trailers));
    }
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined && this.#reply.chunkedEncoding) {
      this.#reply.end(first);
      this.#over({ kind: "ended" });
      return;
    }
    if (first !== undefined) {
      this.#reply.write(first.toString("latin1"), "latin1");
      this.#reply.socket?.uncork(); // or what ends it would be a second piece, and the write a slower one
    }
    this.#reply.end();
    this.#over({ kind: "ended" });
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.fail(error);
  }

  /** The worker has replied, with what cannot be passed on: that it was not lost is known. */
  #reject(controller: Dispatcher.DispatchController, cause: Error): void {
    this.fail(new MalformedReply("the worker's reply cannot be passed on", { cause }));
    controller.abort(gone);
  }

  fail(error: Error): void {
    if (this.#isOver) return;
    this.#over(this.#hasBegun ? { kind: "broken" } : { kind: "unanswered", error });
    if (this.#hasBegun) cut(this.#reply);
  }

  /** What has come goes on, the head alone where nothing else has. */
  flush(): void {
    if (this.#isFlushed || this.#isOver || this.#isWhole) return;
    this.#isFlushed = true;
    const first = this.#first;
    this.#first = undefined;
    if (first === undefined) this.#reply.flushHeaders();
    else this.#write(this.#controller, first);
  }

  /** Writes a part with all that came in the same read of the worker's connection. */
  #write(controller: Dispatcher.DispatchController | undefined, part: Buffer): void {
    const count = this.#parts.push(part);
    if (count >= limits.gatePartsMax && controller?.paused === false) controller.pause();
    if (this.#isSending) return;
    this.#isSending = true;
    process.nextTick(send, this);
  }

  /** Writes the parts when large replies have room in a turn of the event loop. */
  send(): void {
    if (this.#isOver) return;
    const bytes = this.#parts.reduce((sum, { length }) => sum + Math.max(length, limits.gatePartBytes), 0);
    const turn = turnFor(bytes);
    if (turn === undefined) {
      this.#sendParts();
      return;
    }
    this.#controller?.pause();
    void turn.then(() => this.#sendParts());
  }

  #sendParts(): void {
    if (this.#isOver) return;
    if (this.#writeParts()) {
      this.#goOn();
      return;
    }
    this.#controller?.pause();
    this.#stall = setTimeout(() => this.#reply.destroy(), limits.gateStallMs);
    this.#reply.once("drain", () => {
      clearTimeout(this.#stall);
      this.#goOn();
    });
  }

  /** Returns false where the client has to read before more is written. */
  #writeParts(): boolean {
    const parts = this.#parts;
    if (parts.length === 0) return true;
    this.#parts = [];
    return this.#reply.write(parts.length === 1 ? parts[0] : Buffer.concat(parts));
  }

  #goOn(): void {
    this.#isSending = this.#parts.length > 0; // one part still comes after a pause
    if (this.#isSending) this.send();
    else if (this.#controller?.paused) this.#controller.resume();
  }

  #leave = (): void => {
    if (this.#isOver) return;
    this.#over({ kind: "gone" });
    this.#controller?.abort(gone);
  };

  /** Hints are passed on where there are few, and to who reads them. */
  #inform(controller: Dispatcher.DispatchController, status: number, raw: Buffer[]): void {
    if (++this.#informed > limits.gateHintsMax) {
      this.#reject(controller, new Error("its hints do not end"));
      return;
    }
    if (this.#reply.writableNeedDrain || this.#reply.req.httpVersionMinor === 0) return; // HTTP/1.0 knows of none
    if (status === 102) this.#reply.writeProcessing();
    if (status !== 103) return;
    const hints: Record<string, string[]> = {};
    for (const [name, value] of pairs(replyHeaders(raw))) {
      const key = name.toLowerCase();
      hints[key] = [...(hints[key] ?? []), value];
    }
    try {
      if (hints.link) this.#reply.writeEarlyHints(hints);
    } catch {
      // hints that are malformed help nobody
    }
  }

  #over(outcome: Outcome): void {
    this.#isOver = true;
    clearTimeout(this.#stall);
    this.#reply.off("close", this.#leave);
    this.#done(outcome);
  }
}

const whole: Passage[] = [];

/**
 * Replies that came whole are written one behind the other, when all that had come was read: their readers are woken once for
 * many, and not between one and the next.
 */
function writeSoon(passage: Passage): void {
  if (whole.push(passage) === 1) setImmediate(writeWhole);
}

function writeWhole(): void {
  for (const passage of whole.splice(0)) {
    try {
      passage.finish();
    } catch (error) {
      passage.fail(error as Error);
    }
  }
}

/** A reply that has come, and cannot be passed on. */
export class MalformedReply extends Error {}

/** Whether trailers can follow a reply that has no length: only one in chunks has any. */
const mayTrail = (reply: ServerResponse, status: number): boolean =>
  reply.useChunkedEncodingByDefault && reply.req.method !== "HEAD" && status !== 204 && status !== 304;

const flush = (passage: Passage) => passage.flush();
const send = (passage: Passage) => passage.send();
const gone = new Error("the client has gone");
const pairs = (flat: readonly string[]): [string, string][] =>
  Array.from({ length: flat.length / 2 }, (_, n) => [flat[2 * n] as string, flat[2 * n + 1] as string]);

/** Ends a reply so that its client sees that it is not whole: one that may end with its connection needs a reset for that. */
export function cut(reply: ServerResponse): void {
  if (reply.socket && reply.req.httpVersionMinor === 0) reply.socket.resetAndDestroy();
  else reply.destroy();
}
