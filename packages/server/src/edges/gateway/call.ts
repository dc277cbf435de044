import { type Agent, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { TLSSocket } from "node:tls";
import { PlainSignal, realTime } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Found, Needs, OtherServer, Seat } from "../../operations/needs.js";
import { findWorker } from "../../operations/workers/find-worker.js";
import { noteServed } from "../../operations/workers/hear-health.js";
import { readAway } from "../shared/bodies/linger.js";
import { readWhole } from "../shared/bodies/read-whole.js";
import { asRefusal, jsonHeaders, refusalText, requestIdOf } from "../shared/replies/replies.js";
import { admit, admitAtOnce } from "./admit.js";
import { hasBody, isIdempotent, PassingBody } from "./body.js";
import type { Dialler } from "./dialler.js";
import { forward, type Outcome } from "./forward.js";
import { passedHeaders, requestHeaders } from "./headers.js";
import { declined, type Marks, passedOn } from "./mark.js";
import { passOn } from "./pass-on.js";
import type { Target } from "./target.js";
import { type Asking, tunnel } from "./tunnel.js";
import { Declined, failure, type Verdict, verdictOf } from "./verdict.js";

export type Calling = Needs<"registry" | "vault" | "draining" | "gate" | "clock" | "place" | "emit"> & {
  readonly dialler: Dialler;
  readonly isProxyTrusted: boolean;
  readonly marks: Marks;
  /** Connections to other servers. */
  readonly agent: Agent;
};

const route = "/lb/:endpointId/*";

/** One load-balanced request, from the check of its key to the end of its reply. */
export class Call {
  readonly #needs: Calling;
  readonly #request: IncomingMessage;
  readonly #reply: ServerResponse;
  readonly #target: Target;
  readonly #asking: Asking | undefined;
  readonly #requestId: string;
  readonly #beganAt = realTime.monotonicMs();
  #endpoint!: Endpoint;
  #headers: string[] = [];
  #body: Buffer | PassingBody | null = null;
  #untilAt: number | undefined;
  /** Workers that have failed this request, how often it was lost, and how often no connection could be made for it. */
  #tried: Set<number> | undefined;
  readonly #failures = { lost: 0, unsent: 0 };
  /** Whether another server has passed it on: then it is not passed on again, and does not wait here. */
  #isPassed = false;

  constructor(needs: Calling, request: IncomingMessage, reply: ServerResponse, target: Target, asking?: Asking) {
    this.#needs = needs;
    this.#request = request;
    this.#reply = reply;
    this.#target = target;
    this.#asking = asking;
    this.#requestId = requestIdOf(request);
  }

  get #silenceMs(): number {
    return this.#endpoint.settings.executionTimeoutMs;
  }

  get #isSocket(): boolean {
    return this.#asking !== undefined;
  }

  /** Admits the request and sends it on its way, or refuses it. */
  begin(): void {
    const mark = this.#request.headers[passedOn];
    if (mark !== undefined) {
      this.#beginPassed(String(mark));
      return;
    }
    const asked = { request: this.#request, endpointId: this.#target.endpointId, isSocket: this.#isSocket };
    const endpoint = admitAtOnce(this.#needs, asked);
    if (endpoint) this.#enter(endpoint);
    else
      admit(this.#needs, asked)
        .then((admitted) => this.#enter(admitted))
        .catch((error) => this.refuse(error));
  }

  /** Admits a request passed on by another server, which has checked the client's key. */
  #beginPassed(mark: string): void {
    const { marks, registry, draining } = this.#needs;
    const { method = "", url = "" } = this.#request;
    const { endpointId } = this.#target;
    if (!marks.accept(mark, { endpointId, method, url })) {
      const words = `The header ${passedOn} is for requests that one server passes on to another.`;
      this.refuse(new Refusal("INVALID_INPUT", words), "unsent");
      return;
    }
    this.#isPassed = true;
    const endpoint = registry.endpoint(endpointId);
    if (draining.aborted || endpoint?.settings.type !== "LB" || endpoint.deletedAt !== undefined) this.#decline();
    else this.#enter(endpoint);
  }

  /** Gives a request back to the server that passed it on. */
  #decline(): void {
    const verdict = this.#failures.lost > 0 ? "lost" : "unsent";
    this.refuse(new Refusal("NO_WORKER", "No worker of this server could take the request."), verdict);
  }

  /**
   * Replies with a refusal, in the shape of all errors; `givenBack` tells the server that passed the request on what
   * happened.
   */
  refuse(error: unknown, givenBack?: Declined["verdict"]): void {
    const reply = this.#reply;
    if (reply.headersSent || reply.destroyed) {
      reply.destroy();
      return;
    }
    const refusal = asRefusal(error, { id: this.#requestId, route }, this.#needs.emit);
    const text = refusalText(refusal, this.#requestId);
    if (hasBody(this.#request) && !this.#request.complete) readAway(this.#request);
    const headers = jsonHeaders(this.#requestId, refusal);
    headers.push("content-length", String(Buffer.byteLength(text)));
    if (givenBack !== undefined) headers.push(declined, givenBack);
    // with the standard reason phrase: a worker's reply that could not be passed on has left its own
    reply.writeHead(refusal.status, STATUS_CODES[refusal.status] ?? "", headers);
    reply.end(text);
    this.#served(refusal.status);
  }

  #enter(endpoint: Endpoint): void {
    const { socket, headers, httpVersion, rawHeaders } = this.#request;
    if (this.#reply.destroyed || socket.destroyed) return; // the client went away while its key was looked up
    this.#endpoint = endpoint;
    if (this.#isPassed) this.#headers = passedHeaders(rawHeaders);
    else
      this.#headers = requestHeaders(rawHeaders, {
        address: plainAddress(socket.remoteAddress),
        isSecure: (socket as TLSSocket).encrypted === true,
        host: headers.host ?? "",
        prefix: this.#target.prefix,
        requestId: this.#requestId,
        httpVersion,
        isTrusted: this.#needs.isProxyTrusted,
      });
    if (!this.#isKept()) {
      this.#find();
      return;
    }
    const then = (body: Buffer, release: () => void) => {
      this.#body = body; // kept until the reply ends, because it may be sent again
      if (this.#reply.closed) return release();
      this.#reply.once("close", release);
      this.#find();
    };
    readWhole(this.#request, endpoint.ownerNo, { then, refuse: (error) => this.refuse(error) });
  }

  /** Whether the body is buffered here: if it is small, may be sent twice, and arrives without `100-continue`. */
  #isKept(): boolean {
    const { headers, method = "" } = this.#request;
    if (headers.expect !== undefined) return false;
    const length = Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);
    return hasBody(this.#request) && isIdempotent(method) && length <= limits.gateKeptBytesMax;
  }

  /** Finds a healthy worker, or else another server that has one; otherwise waits. */
  #find(): void {
    const { gate } = this.#needs;
    const { no } = this.#endpoint;
    const found = gate.take(no, this.#isSocket, this.#tried) ?? (this.#isPassed ? undefined : gate.other(no));
    if (found) this.#go(found);
    else if (this.#isPassed) this.#decline();
    else this.#wait().catch((error) => this.refuse(error));
  }

  #go(found: Found): void {
    if ("worker" in found) this.#send(found);
    else this.#passOn(found);
  }

  async #wait(): Promise<void> {
    const gone = new PlainSignal();
    const leave = () => gone.abort();
    this.#reply.once("close", leave);
    this.#untilAt ??= this.#needs.clock.now() + limits.gateWaitMs;
    try {
      const search = { isSocket: this.#isSocket, untilAt: this.#untilAt, gone };
      const found = await findWorker(this.#needs, this.#endpoint, {
        ...search,
        ...(this.#tried ? { tried: this.#tried } : {}),
      });
      if (!gone.aborted) this.#go(found);
      else if ("worker" in found) this.#needs.gate.release(found, this.#isSocket, "retried");
    } catch (error) {
      if (!gone.aborted) throw error;
    } finally {
      this.#reply.off("close", leave);
    }
  }

  #send(seat: Seat): void {
    const { dialler } = this.#needs;
    const { row } = seat.worker;
    const done = (outcome: Outcome) => this.#over(seat, outcome);
    const connections = dialler.connections(row);
    const address = this.#asking && dialler.address(row);
    if (!connections) {
      done({ kind: "unanswered", error: Object.assign(new Error("unreachable"), { syscall: "connect" }) });
    } else if (this.#asking && address) {
      tunnel(
        address,
        { path: this.#target.path, headers: this.#headers, silenceMs: this.#silenceMs },
        this.#asking,
        done,
      );
    } else {
      if (this.#body === null && hasBody(this.#request)) this.#openBody();
      // written out here and below: objects made by spreading have varying shapes, which are slow to read
      const sending = {
        method: this.#request.method ?? "GET",
        path: this.#target.path,
        headers: this.#headers,
        body: this.#body,
        silenceMs: this.#silenceMs,
      };
      forward(connections, sending, this.#reply, done);
    }
  }

  /** Passes the request on to a server that has a worker. */
  #passOn(server: OtherServer): void {
    const { agent, marks } = this.#needs;
    const { method = "GET" } = this.#request;
    const { endpointId, path } = this.#target;
    const url = `/lb/${endpointId}${path}`; // the canonical path, whichever address the client has used
    const headers = [...this.#headers, passedOn, marks.make(server.hostNo, { endpointId, method, url })];
    const done = (outcome: Outcome) => this.#passedOn(server, outcome);
    const silenceMs = this.#silenceMs;
    if (this.#asking) {
      tunnel(
        server,
        { path: url, headers, silenceMs: silenceMs + limits.gatePassOnMs, isServer: true },
        this.#asking,
        done,
      );
      return;
    }
    const kept = this.#body;
    const isStream = kept instanceof PassingBody || (kept === null && hasBody(this.#request));
    const body = isStream ? () => this.#openBody() : kept;
    passOn(agent, server, { method, path: url, headers, body, silenceMs }, this.#reply, done);
  }

  /** Handles the outcome of passing a request on. */
  #passedOn(server: OtherServer, outcome: Outcome): void {
    if (outcome.kind !== "unanswered") {
      this.#end(outcome.kind === "gone" && !this.#reply.headersSent);
      return;
    }
    const { gate } = this.#needs;
    const { error } = outcome;
    const verdict = verdictOf(error);
    if (error instanceof Declined) gate.avoid(server, limits.beatMs, this.#endpoint.no);
    else if (verdict === "unsent" || verdict === "lost") gate.avoid(server, limits.gateAvoidMs);
    // an unreachable server is no reason to give up: the request waits here
    if (verdict === "unsent" ? this.#isBodyWhole() : this.#mayRetry(verdict)) this.#find();
    else this.refuse(failure(verdict));
  }

  /** The body, opened to be read as it arrives. */
  #openBody(): PassingBody {
    if (this.#body instanceof PassingBody) return this.#body;
    this.#invite();
    const body = new PassingBody(this.#request);
    this.#body = body;
    return body;
  }

  /** Answers `Expect: 100-continue`: a worker is ready for the body. */
  #invite(): void {
    const { headers, httpVersionMinor } = this.#request;
    if (httpVersionMinor > 0 && headers.expect?.toLowerCase() === "100-continue") this.#reply.writeContinue();
  }

  #over(seat: Seat, outcome: Outcome): void {
    const { gate, registry, emit } = this.#needs;
    const { row } = seat.worker;
    if (outcome.kind === "unanswered") {
      this.#unanswered(seat, outcome.error);
      return;
    }
    // a client may leave a stream whenever it likes; one that leaves before the reply began was not served
    const isUnserved = outcome.kind === "gone" && !this.#reply.headersSent;
    gate.release(seat, this.#isSocket, outcome.kind === "broken" || isUnserved ? "failed" : "completed");
    if (outcome.kind === "ended" && row.lastDoneAt === undefined) {
      const worker = registry.workerByNo(row.no);
      const message = "a worker's first reply could not be recorded";
      if (worker) noteServed(this.#needs, worker).catch((error) => emit({ type: "server.warning", message, error }));
    }
    if (outcome.kind === "broken") gate.suspect(row.no);
    this.#end(isUnserved);
  }

  #end(isUnserved: boolean): void {
    if (hasBody(this.#request) && !this.#request.complete) readAway(this.#request);
    this.#served(isUnserved ? clientHasGone : this.#reply.statusCode);
  }

  /** The worker failed before the first byte of a reply: another one may be tried if the request can be sent again. */
  #unanswered(seat: Seat, error: Error): void {
    const { gate } = this.#needs;
    const { no } = seat.worker.row;
    const verdict = verdictOf(error);
    const isRetried = this.#mayRetry(verdict);
    if (verdict === "unsent" || verdict === "lost") {
      gate.shut(no); // until it has answered a ping
      gate.suspect(no);
    }
    this.#tried = (this.#tried ?? new Set()).add(no);
    gate.release(seat, this.#isSocket, isRetried ? "retried" : "failed");
    if (isRetried) this.#find();
    else this.refuse(failure(verdict));
  }

  /**
   * A request that reached no worker may go to another; one that may have reached a worker only if it is idempotent.
   */
  #mayRetry(verdict: Verdict): boolean {
    const { method = "" } = this.#request;
    if (!this.#isBodyWhole()) return false;
    if (verdict === "unsent") return ++this.#failures.unsent < limits.gateDialsMax;
    return verdict === "lost" && isIdempotent(method) && ++this.#failures.lost < limits.gateTriesMax;
  }

  /** Whether no part of the body has been read yet. */
  #isBodyWhole(): boolean {
    const body = this.#body;
    return !(body instanceof PassingBody && (body.destroyed || body.readableDidRead));
  }

  #served(status: number): void {
    if (this.#isPassed) return; // the server that passed it on counts it
    const durationMs = realTime.monotonicMs() - this.#beganAt;
    this.#needs.emit({ type: "request.served", route, method: this.#request.method ?? "", status, durationMs });
  }
}

/** The status in metrics if the client left before its reply, as in proxies' logs. */
const clientHasGone = 499;

/** Shows an IPv4-mapped IPv6 address as the IPv4 address. */
const plainAddress = (address = "unknown"): string => (address.startsWith("::ffff:") ? address.slice(7) : address);
