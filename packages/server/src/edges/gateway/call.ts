import type { Agent, IncomingMessage, ServerResponse } from "node:http";
import { PlainSignal, realTime } from "../../clock.js";
import type { Scope } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { keyEndedMeanwhile } from "../../operations/access/authenticate.js";
import { type Marks, passedOn } from "../../operations/access/server-marks.js";
import type { Found, Needs, OtherServer, Seat } from "../../operations/needs.js";
import { findWorker } from "../../operations/workers/find-worker.js";
import { noteServed } from "../../operations/workers/hear-health.js";
import { readAway } from "../shared/bodies/linger.js";
import { readWhole } from "../shared/bodies/read-whole.js";
import { type Connections, tooManyConnections } from "../shared/connections/keep-room.js";
import { sendPlainRefusal } from "../shared/replies/plain-refusal.js";
import { asRefusal, requestIdOf } from "../shared/replies/replies.js";
import { type Admitted, admit, admitAtOnce } from "./admit.js";
import { CallBody, hasBody, mayBeKept } from "./body.js";
import type { Dialler } from "./connections/dialler.js";
import { forward, type Outcome } from "./forward.js";
import { declined, headersFrom, passedHeaders } from "./headers.js";
import { passOn } from "./pass-on.js";
import type { Target } from "./target.js";
import { Tries } from "./tries.js";
import { type Asking, tunnel } from "./tunnel.js";
import { clientHasGone, Declined, failure, type Verdict, verdictOf } from "./verdict.js";

export type Calling = Needs<"registry" | "vault" | "draining" | "gate" | "clock" | "here" | "emit" | "heldCalls"> & {
  readonly dialler: Dialler;
  readonly isProxyTrusted: boolean;
  readonly marks: Marks;
  /** Connections to other servers. */
  readonly agent: Agent;
  readonly connections: Connections | undefined;
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
  #scope!: Scope; // unset if it was passed on: then it does not wait here
  #headers: string[] = [];
  readonly #body: CallBody;
  #untilAt: number | undefined;
  readonly #tries = new Tries();
  /** Whether another server passed this request on. If so, it is not passed on again and does not wait here. */
  #isPassed = false;

  constructor(needs: Calling, request: IncomingMessage, reply: ServerResponse, target: Target, asking?: Asking) {
    this.#needs = needs;
    this.#request = request;
    this.#reply = reply;
    this.#target = target;
    this.#asking = asking;
    this.#requestId = requestIdOf(request);
    this.#body = new CallBody(request, reply);
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
    const admitted = admitAtOnce(this.#needs, asked);
    if (admitted) this.#enter(admitted.endpoint, admitted);
    else {
      const entered = admit(this.#needs, asked).then((found) => this.#enter(found.endpoint, found));
      entered.catch((error) => this.refuse(error));
    }
  }

  /** Admits a request passed on by another server, which has checked the client's key. */
  #beginPassed(mark: string): void {
    const { marks, registry, draining } = this.#needs;
    const { method = "", url = "" } = this.#request;
    const { endpointId } = this.#target;
    if (!marks.accept(mark, { target: endpointId, method, url })) {
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
    const verdict = this.#tries.wasLost ? "lost" : "unsent";
    this.refuse(new Refusal("NO_WORKER", "No worker of this server could take the request."), verdict);
  }

  /** Replies with a refusal; `givenBack` tells the server that passed the request on what happened. */
  refuse(error: unknown, givenBack?: Declined["verdict"]): void {
    const reply = this.#reply;
    if (reply.headersSent || reply.destroyed) {
      reply.destroy();
      return;
    }
    const refusal = asRefusal(error, { id: this.#requestId, route }, this.#needs.emit);
    if (hasBody(this.#request) && !this.#request.complete) readAway(this.#request);
    sendPlainRefusal(reply, this.#requestId, refusal, givenBack === undefined ? [] : [declined, givenBack]);
    this.#served(refusal.status);
  }

  /** Looks for a worker, after reading a small body. The request ends when its key may no longer make it. */
  #enter(endpoint: Endpoint, admitted?: Admitted): void {
    const request = this.#request;
    if (this.#reply.destroyed || request.socket.destroyed) return; // the client went away while its key was looked up
    if (this.#needs.connections?.know(request.socket, (admitted ?? endpoint).ownerNo) === false) {
      this.refuse(tooManyConnections());
      return;
    }
    this.#endpoint = endpoint;
    if (admitted) {
      this.#scope = admitted.scope;
      const leave = this.#needs.heldCalls.hold(admitted.keyHash, { ...admitted, end: () => this.#cut() });
      // once a WebSocket is open, its reply has no socket and never emits "close"
      (this.#asking?.socket ?? this.#reply).once("close", leave);
    }
    const { prefix } = this.#target;
    const isTrusted = this.#needs.isProxyTrusted;
    this.#headers = this.#isPassed
      ? passedHeaders(request.rawHeaders)
      : headersFrom(request, { prefix, requestId: this.#requestId, isTrusted });
    if (!mayBeKept(request)) {
      this.#find();
      return;
    }
    const then = (body: Buffer, release: () => void) => {
      this.#body.content = body; // it may be sent again
      if (this.#reply.closed) return release();
      this.#reply.once("close", release);
      this.#find();
    };
    readWhole(this.#request, endpoint.ownerNo, { then, refuse: (error) => this.refuse(error) });
  }

  /** Ends the request because its key was revoked, has expired or may no longer make it. */
  #cut(): void {
    if (this.#asking) this.#asking.socket.destroy();
    else if (this.#reply.headersSent) this.#reply.destroy();
    else this.refuse(keyEndedMeanwhile());
  }

  /** Finds a healthy worker, or else another server that has one; otherwise waits. */
  #find(): void {
    const { gate } = this.#needs;
    const { no } = this.#endpoint;
    const found = gate.take(no, this.#isSocket, this.#tries.workers) ?? (this.#isPassed ? undefined : gate.other(no));
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
      const search = { scope: this.#scope, isSocket: this.#isSocket, untilAt: this.#untilAt, gone };
      const tried = this.#tries.workers ? { tried: this.#tries.workers } : {};
      const found = await findWorker(this.#needs, this.#endpoint, { ...search, ...tried });
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
    const silenceMs = this.#endpoint.settings.executionTimeoutMs;
    const connections = dialler.connections(row);
    const done = (outcome: Outcome) => this.#over(seat, outcome);
    const reach = this.#asking && dialler.reach(row);
    if (!connections) {
      done({ kind: "unanswered", error: Object.assign(new Error("unreachable"), { syscall: "connect" }) });
    } else if (this.#asking && reach) {
      tunnel(reach, { path: this.#target.path, headers: this.#headers, silenceMs }, this.#asking, done);
    } else {
      if (this.#body.isStream) this.#body.open();
      // written out here and below: objects made by spreading have varying shapes, which are slow to read
      const sending = {
        method: this.#request.method ?? "GET",
        path: this.#target.path,
        headers: this.#headers,
        body: this.#body.content,
        silenceMs,
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
    const headers = [...this.#headers, passedOn, marks.make(server.serverNo, { target: endpointId, method, url })];
    const done = (outcome: Outcome) => this.#passedOn(server, outcome);
    const silenceMs = this.#endpoint.settings.executionTimeoutMs;
    if (this.#asking) {
      const bounded = { path: url, headers, silenceMs: silenceMs + limits.gatePassOnMs, isServer: true } as const;
      tunnel(server, bounded, this.#asking, done);
      return;
    }
    const body = this.#body.isStream ? () => this.#body.open() : this.#body.kept;
    passOn(agent, server, { method, path: url, headers, body, silenceMs }, this.#reply, done);
  }

  #passedOn(server: OtherServer, outcome: Outcome): void {
    if (outcome.kind !== "unanswered") return void this.#end(outcome.kind === "gone" && !this.#reply.headersSent);
    const { gate } = this.#needs;
    const { error } = outcome;
    const verdict = verdictOf(error);
    if (error instanceof Declined) gate.avoid(server, limits.beatMs, this.#endpoint.no);
    else if (verdict === "unsent" || verdict === "lost") gate.avoid(server, limits.gateAvoidMs);
    // an unreachable server is no reason to give up: the request waits here
    if (verdict === "unsent" ? this.#body.isWhole : this.#mayRetry(verdict)) this.#find();
    else this.refuse(failure(verdict));
  }

  #over(seat: Seat, outcome: Outcome): void {
    const { gate, registry, emit } = this.#needs;
    const { row } = seat.worker;
    if (outcome.kind === "unanswered") return void this.#unanswered(seat, outcome.error);
    // a client may leave a stream at any time, but a request whose client left before the reply began was not served
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
    const { gate, clock } = this.#needs;
    const { no } = seat.worker.row;
    const verdict = verdictOf(error);
    if (verdict === "unreached") this.#untilAt ??= clock.now() + limits.gateWaitMs;
    const isRetried = this.#mayRetry(verdict) && clock.now() < (this.#untilAt ?? Number.POSITIVE_INFINITY);
    if (verdict === "unsent" || verdict === "unreached" || verdict === "lost") {
      gate.shut(no); // until it has answered a ping
      gate.suspect(no);
    }
    if (verdict !== "unreached") this.#tries.failedAt(no);
    gate.release(seat, this.#isSocket, isRetried ? "retried" : "failed");
    if (isRetried) this.#find();
    else this.refuse(failure(verdict));
  }

  #mayRetry(verdict: Verdict): boolean {
    return this.#body.isWhole && this.#tries.mayGoOn(verdict, this.#request.method ?? "");
  }

  #served(status: number): void {
    if (this.#isPassed) return; // the server that passed it on counts it
    const durationMs = realTime.monotonicMs() - this.#beganAt;
    this.#needs.emit({ type: "request.served", route, method: this.#request.method ?? "", status, durationMs });
  }
}
