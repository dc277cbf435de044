import type { ServerResponse } from "node:http";
import type { Dispatcher } from "undici";
import { realTime, type Timer } from "../../clock.js";
import { limits } from "../../limits/index.js";
import { turnFor } from "../shared/replies/write-turns.js";
import type { PassingBody } from "./body.js";
import type { Connections } from "./connections/connections.js";
import { replyHeaders } from "./headers.js";
import { writeSoon } from "./whole-replies.js";

/** The outcome of a request that was sent to a worker. */
export type Outcome =
  | { readonly kind: "ended" }
  /** It failed before any of the reply arrived. */
  | { readonly kind: "unanswered"; readonly error: Error }
  /** The worker's reply broke off, and so did ours. */
  | { readonly kind: "broken" }
  | { readonly kind: "gone" };

export interface Sending {
  readonly method: string;
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer | PassingBody | null;
  /** Limit until the reply begins, and for each silence within it. */
  readonly silenceMs: number;
}

/** Sends a request over one of a worker's connections and streams the reply to the client; `done` is called once. */
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

/** A single reply being passed on. */
export class Passage implements Dispatcher.DispatchHandler {
  readonly #reply: ServerResponse;
  readonly #done: (outcome: Outcome) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #hasBegun = false;
  #isOver = false;
  /** The first piece of the body, if the head is still waiting for it. */
  #first: Buffer | undefined;
  #isFlushed = false;
  /** Pieces to be written together: writing one byte costs as much as writing a kilobyte. */
  #pieces: Buffer[] = [];
  #isSending = false;
  /** All of it arrived before any was written; it waits for its turn to be written. */
  #isWhole = false;
  #trailers: string[] = [];
  #stall: Timer | undefined;
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
      if (raw.length > 2 * limits.headersMax) throw new Error(`it has more than ${limits.headersMax} headers`);
      this.#reply.writeHead(status, statusText ?? "", replyHeaders(raw, mayTrail(this.#reply, status)));
    } catch (error) {
      this.#reject(controller, error as Error);
      return;
    }
    this.#hasBegun = true;
    // if its body comes later, the head goes out alone
    process.nextTick(flush, this);
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    // a small reply usually arrives in one read: its first piece waits, so that head and body go out in one write
    if (!this.#isFlushed && this.#first === undefined && piece.length <= limits.gateFirstBytesMax) {
      this.#first = piece;
      return;
    }
    this.flush();
    this.#write(controller, piece);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#trailers = replyHeaders((controller.rawTrailers ?? []) as Buffer[]);
    if (this.#isFlushed) this.finish();
    else {
      this.#isWhole = true;
      writeSoon(this);
    }
  }

  /** Writes the rest and ends the reply. */
  finish(): void {
    if (this.#isOver) return;
    this.#isWhole = false;
    this.#writePieces();
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
      this.#reply.socket?.uncork(); // otherwise the end would be a second, slower write
    }
    this.#reply.end();
    this.#over({ kind: "ended" });
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.fail(error);
  }

  /** Fails because the worker's reply cannot be passed on: it is malformed, and the worker was not lost. */
  #reject(controller: Dispatcher.DispatchController, cause: Error): void {
    this.fail(new MalformedReply("the worker's reply cannot be passed on", { cause }));
    controller.abort(gone);
  }

  fail(error: Error): void {
    if (this.#isOver) return;
    this.#over(this.#hasBegun ? { kind: "broken" } : { kind: "unanswered", error });
    if (this.#hasBegun) cut(this.#reply);
  }

  /** Sends what has arrived so far, even if that is only the head. */
  flush(): void {
    if (this.#isFlushed || this.#isOver || this.#isWhole) return;
    this.#isFlushed = true;
    const first = this.#first;
    this.#first = undefined;
    if (first === undefined) this.#reply.flushHeaders();
    else this.#write(this.#controller, first);
  }

  /** Writes a piece, joined with all that came in the same read of the worker's connection. */
  #write(controller: Dispatcher.DispatchController | undefined, piece: Buffer): void {
    const count = this.#pieces.push(piece);
    if (count >= limits.gatePiecesMax && controller?.paused === false) controller.pause();
    if (this.#isSending) return;
    this.#isSending = true;
    process.nextTick(send, this);
  }

  /** Writes the pieces once large replies have budget left in a turn of the event loop. */
  send(): void {
    if (this.#isOver) return;
    const bytes = this.#pieces.reduce((sum, { length }) => sum + Math.max(length, limits.gatePieceBytes), 0);
    const turn = turnFor(bytes);
    if (turn) {
      this.#controller?.pause();
      void turn.then(() => this.#sendPieces());
    } else this.#sendPieces();
  }

  #sendPieces(): void {
    if (this.#isOver) return;
    if (this.#writePieces()) {
      this.#goOn();
      return;
    }
    this.#controller?.pause();
    this.#stall = realTime.after(limits.gateStallMs, () => this.#reply.destroy());
    this.#reply.once("drain", () => {
      realTime.cancel(this.#stall);
      this.#goOn();
    });
  }

  /** Returns false if the client must read before more is written. */
  #writePieces(): boolean {
    const pieces = this.#pieces;
    if (pieces.length === 0) return true;
    this.#pieces = [];
    return this.#reply.write(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
  }

  #goOn(): void {
    this.#isSending = this.#pieces.length > 0; // one more piece arrives after a pause
    if (this.#isSending) this.send();
    else if (this.#controller?.paused) this.#controller.resume();
  }

  #leave = (): void => {
    if (this.#isOver) return;
    this.#over({ kind: "gone" });
    this.#controller?.abort(gone);
  };

  /** Passes on informational responses, if they are few and the client understands them. */
  #inform(controller: Dispatcher.DispatchController, status: number, raw: Buffer[]): void {
    if (++this.#informed > limits.gateHintsMax) {
      this.#reject(controller, new Error(`it sends more than ${limits.gateHintsMax} informational responses`));
      return;
    }
    if (this.#reply.writableNeedDrain || this.#reply.req.httpVersionMinor === 0) return; // HTTP/1.0 has none
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
      // a malformed hint is no loss
    }
  }

  #over(outcome: Outcome): void {
    this.#isOver = true;
    realTime.cancel(this.#stall);
    this.#reply.off("close", this.#leave);
    this.#done(outcome);
  }
}

/** The worker's reply arrived but cannot be passed on. */
export class MalformedReply extends Error {}

/** Whether trailers can follow a reply without a length: only chunked replies can have them. */
const mayTrail = (reply: ServerResponse, status: number): boolean =>
  reply.useChunkedEncodingByDefault && reply.req.method !== "HEAD" && status !== 204 && status !== 304;

const flush = (passage: Passage) => passage.flush();
const send = (passage: Passage) => passage.send();
const gone = new Error("the client has gone");
const pairs = (flat: readonly string[]): [string, string][] =>
  Array.from({ length: flat.length / 2 }, (_, n) => [flat[2 * n] as string, flat[2 * n + 1] as string]);

/** Breaks a reply off so that its client notices: on HTTP/1.0, closing would look like the normal end. */
export function cut(reply: ServerResponse): void {
  if (reply.socket && reply.req.httpVersionMinor === 0) reply.socket.resetAndDestroy();
  else reply.destroy();
}
