import { type Agent, type ClientRequest, type IncomingMessage, request as open, type ServerResponse } from "node:http";
import type { Dispatcher } from "undici";
import { realTime, type Timer } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { OtherServer } from "../../operations/needs.js";
import type { PassingBody } from "./body.js";
import { boundConnect } from "./connections/connect.js";
import { type Outcome, Passage, type Sending } from "./forward.js";
import { declined } from "./headers.js";
import { Declined } from "./verdict.js";

export interface PassingOn extends Omit<Sending, "body"> {
  /** A streamed body is opened, and so read, only once the other server has a worker for the request. */
  readonly body: Buffer | (() => PassingBody) | null;
}

/**
 * Sends a request to another server that has a worker for it, and streams the reply to the client; `done` is called
 * once. Uses node:http because the other server must accept before the body is sent (`Expect: 100-continue`), which
 * undici cannot do.
 */
export function passOn(
  agent: Agent,
  { host, port }: OtherServer,
  { method, path, headers, body, silenceMs }: PassingOn,
  reply: ServerResponse,
  done: (outcome: Outcome) => void,
): void {
  // the other server bounds the worker's silence and reports it, so our timeout is longer
  const timeout = silenceMs + limits.gatePassOnMs;
  const maxHeaderSize = limits.gateReplyHeaderBytesMax;
  const framed = framedHeaders(method, headers, body, host);
  let asked: ClientRequest;
  try {
    asked = open({ agent, host, port, method, path, headers: framed, setHost: false, timeout, maxHeaderSize });
  } catch (error) {
    done({ kind: "unanswered", error: error as Error });
    return;
  }
  const hop = new Hop(asked, typeof body === "function" ? body : undefined, reply, done);
  if (typeof body !== "function") asked.end(body ?? undefined);
  else hop.expectAnswer();
}

class Hop {
  readonly #asked: ClientRequest;
  readonly #openBody: (() => PassingBody) | undefined;
  readonly #passage: Passage;
  readonly #controller: Controller;
  #body: PassingBody | undefined;
  #answer: IncomingMessage | undefined;
  #patience: Timer | undefined;

  constructor(
    asked: ClientRequest,
    openBody: (() => PassingBody) | undefined,
    reply: ServerResponse,
    done: (outcome: Outcome) => void,
  ) {
    this.#asked = asked;
    this.#openBody = openBody;
    this.#controller = new Controller(asked);
    this.#passage = new Passage(reply, (outcome) => {
      realTime.cancel(this.#patience);
      this.#body?.destroy();
      // a connection with part of the body left to send cannot carry another request
      if (outcome.kind !== "ended" || !asked.writableFinished) asked.destroy();
      done(outcome);
    });
    this.#passage.onRequestStart(this.#controller);
    boundConnect(asked);
    asked.once("continue", () => this.#sendBody());
    asked.on("information", ({ statusCode, rawHeaders }) => this.#inform(statusCode, rawHeaders));
    asked.once("response", (answer) => this.#hear(answer));
    asked.on("timeout", () => this.#timeOut());
    asked.on("error", (error) => this.#fail(error));
    asked.once("close", () => this.#answer?.complete || this.#fail(new Error("the other server hung up")));
  }

  /** Waits for the other server to accept a request with a body, or decline it, before any of the body is sent. */
  expectAnswer(): void {
    this.#patience = realTime.after(limits.gatePassOnMs, () => this.#fail(new Error("the other server says nothing")));
  }

  #sendBody(): void {
    realTime.cancel(this.#patience);
    if (this.#answer || this.#asked.destroyed) return;
    this.#body = this.#openBody?.();
    this.#body?.pipe(this.#asked);
  }

  #inform(status: number, rawHeaders: string[]): void {
    if (status === 100) return;
    this.#controller.rawHeaders = rawHeaders;
    this.#passage.onResponseStart(this.#controller, status, {});
  }

  #hear(answer: IncomingMessage): void {
    realTime.cancel(this.#patience);
    this.#answer = answer;
    const [passage, controller] = [this.#passage, this.#controller];
    answer.on("error", (error) => passage.fail(error));
    const why = answer.headers[declined];
    if (why !== undefined) {
      passage.fail(new Declined(why === "lost" ? "lost" : "unsent"));
      return;
    }
    controller.answer = answer;
    controller.rawHeaders = answer.rawHeaders;
    passage.onResponseStart(controller, answer.statusCode ?? 502, {}, answer.statusMessage);
    answer.on("data", (part: Buffer) => passage.onResponseData(controller, part));
    answer.once("end", () => {
      controller.rawTrailers = answer.rawTrailers;
      passage.onResponseEnd(controller);
    });
  }

  #timeOut(): void {
    const isUploading = this.#openBody !== undefined && !this.#asked.writableFinished;
    if (this.#controller.paused || (isUploading && !this.#answer)) return; // other limits apply
    this.#passage.fail(Object.assign(new Error("silence"), { code: "UND_ERR_HEADERS_TIMEOUT" }));
  }

  /** Fails; if the body was never asked for, no worker can have seen the request. */
  #fail(error: Error): void {
    const isUnsent = this.#openBody !== undefined && !this.#body && !this.#answer;
    this.#passage.fail(isUnsent ? Object.assign(error, { syscall: "connect" }) : error);
  }
}

/** undici's handler controller, for a request of Node's own. */
class Controller implements Dispatcher.DispatchController {
  readonly #asked: ClientRequest;
  answer: IncomingMessage | undefined;
  rawHeaders: string[] = [];
  rawTrailers: string[] = [];

  constructor(asked: ClientRequest) {
    this.#asked = asked;
  }

  get aborted(): boolean {
    return this.#asked.destroyed;
  }

  get paused(): boolean {
    return this.answer?.isPaused() ?? false;
  }

  readonly reason = null;
  abort = (): void => void this.#asked.destroy();
  pause = (): void => void this.answer?.pause();
  resume = (): void => void this.answer?.resume();
}

/** Adds the headers that frame the body, unless the client has sent a length. */
function framedHeaders(method: string, headers: readonly string[], body: PassingOn["body"], host: string): string[] {
  const said = new Set(headers.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()));
  const framed = [...headers];
  if (!said.has("host")) framed.push("host", host);
  if (typeof body === "function") framed.push("expect", "100-continue");
  if (said.has("content-length")) return framed;
  if (typeof body === "function") framed.push("transfer-encoding", "chunked");
  else if (body === null && !/^(GET|HEAD|DELETE|OPTIONS|TRACE)$/.test(method)) framed.push("content-length", "0");
  return framed;
}
