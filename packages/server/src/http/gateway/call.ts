import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { TLSSocket } from "node:tls";
import { PlainSignal } from "../../clock.js";
import type { Endpoint } from "../../domain/endpoint.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits.js";
import { findWorker } from "../../operations/find-worker.js";
import { noteServed } from "../../operations/hear-health.js";
import type { Needs, Seat } from "../../operations/needs.js";
import { readAway } from "../linger.js";
import { asRefusal, jsonHeaders, refusalText, requestIdOf } from "../replies.js";
import { admit, admitAtOnce } from "./admit.js";
import { isIdempotent, PassingBody, readWhole } from "./body.js";
import type { Dialler } from "./dialler.js";
import { forward, MalformedReply, type Outcome } from "./forward.js";
import { requestHeaders } from "./headers.js";
import type { Target } from "./target.js";
import { type Asking, tunnel } from "./tunnel.js";

export type Calling = Needs<"registry" | "vault" | "draining" | "gate" | "clock" | "place" | "emit"> & {
  readonly dialler: Dialler;
  readonly isProxyTrusted: boolean;
};

const route = "/lb/:endpointId/*";

/** One load-balanced request, from its key to the end of its reply. */
export class Call {
  readonly #needs: Calling;
  readonly #request: IncomingMessage;
  readonly #reply: ServerResponse;
  readonly #target: Target;
  readonly #asking: Asking | undefined;
  readonly #requestId: string;
  readonly #beganAt = performance.now();
  #endpoint!: Endpoint;
  #headers: string[] = [];
  #body: Buffer | PassingBody | null = null;
  #untilAt: number | undefined;
  /** Workers that have failed it; how often it was lost, and how often no connection was made for it. */
  #tried: Set<number> | undefined;
  readonly #failures = { lost: 0, unsent: 0 };

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

  /** Lets it in, where it may, and sends it on its way. */
  begin(): void {
    const asked = { request: this.#request, endpointId: this.#target.endpointId, isSocket: this.#isSocket };
    const endpoint = admitAtOnce(this.#needs, asked);
    if (endpoint) this.#enter(endpoint);
    else
      admit(this.#needs, asked)
        .then((admitted) => this.#enter(admitted))
        .catch((error) => this.refuse(error));
  }

  /** Answers with a refusal, in the shape of every error. */
  refuse(error: unknown): void {
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
    // its own words: a reply that could not be passed on has left the worker's
    reply.writeHead(refusal.status, STATUS_CODES[refusal.status] ?? "", headers);
    reply.end(text);
    this.#served(refusal.status);
  }

  #enter(endpoint: Endpoint): void {
    const { socket, headers, httpVersion, rawHeaders } = this.#request;
    if (this.#reply.destroyed || socket.destroyed) return; // it went while its key was looked up
    this.#endpoint = endpoint;
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
    readWhole(this.#request, (body) => {
      this.#body = body;
      this.#find();
    });
  }

  /** Whether its body is kept here: one that is small, may be sent twice, and comes without being asked for. */
  #isKept(): boolean {
    const { headers, method = "" } = this.#request;
    if (headers.expect !== undefined) return false;
    const length = Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);
    return hasBody(this.#request) && isIdempotent(method) && length <= limits.gateKeptBytesMax;
  }

  /** Takes a worker, at once where one is healthy. */
  #find(): void {
    const { gate } = this.#needs;
    const seat = gate.take(this.#endpoint.no, this.#isSocket, this.#tried);
    if (seat) this.#send(seat);
    else this.#wait().catch((error) => this.refuse(error));
  }

  async #wait(): Promise<void> {
    const gone = new PlainSignal();
    const leave = () => gone.abort();
    this.#reply.once("close", leave);
    this.#untilAt ??= this.#needs.clock.now() + limits.gateWaitMs;
    try {
      const search = { isSocket: this.#isSocket, untilAt: this.#untilAt, gone };
      const seat = await findWorker(this.#needs, this.#endpoint, {
        ...search,
        ...(this.#tried ? { tried: this.#tried } : {}),
      });
      if (gone.aborted) this.#needs.gate.release(seat, this.#isSocket, "retried");
      else this.#send(seat);
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
      if (this.#body === null && hasBody(this.#request)) {
        this.#invite();
        this.#body = new PassingBody(this.#request);
      }
      // written out, here and where it is passed on: spread copies are objects of no known shape, and slow to read
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

  /** Who has asked whether to send the body may: a worker is there. */
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
    // who reads a stream leaves it where he likes; who leaves before it began was not served
    const isUnserved = outcome.kind === "gone" && !this.#reply.headersSent;
    gate.release(seat, this.#isSocket, outcome.kind === "broken" || isUnserved ? "failed" : "completed");
    if (outcome.kind === "ended" && row.lastDoneAt === undefined) {
      const worker = registry.workerByNo(row.no);
      const message = "that a worker has served could not be stored";
      if (worker) noteServed(this.#needs, worker).catch((error) => emit({ type: "server.warning", message, error }));
    }
    if (outcome.kind === "broken") gate.suspect(row.no);
    if (hasBody(this.#request) && !this.#request.complete) readAway(this.#request);
    this.#served(isUnserved ? clientHasGone : this.#reply.statusCode);
  }

  /** The worker has failed before the first byte of a reply: another may do it, where it may be done twice. */
  #unanswered(seat: Seat, error: Error): void {
    const { gate } = this.#needs;
    const { no } = seat.worker.row;
    const verdict = verdictOf(error);
    const isRetried = this.#mayRetry(verdict);
    if (verdict === "unsent" || verdict === "lost") {
      gate.shut(no); // until it has said that it is well
      gate.suspect(no);
    }
    this.#tried = (this.#tried ?? new Set()).add(no);
    gate.release(seat, this.#isSocket, isRetried ? "retried" : "failed");
    if (isRetried) this.#find();
    else this.refuse(failure(verdict));
  }

  /** What did not reach a worker may go to another; what did, where it may be carried out twice. */
  #mayRetry(verdict: Verdict): boolean {
    const { method = "" } = this.#request;
    const body = this.#body;
    if (body instanceof PassingBody && (body.destroyed || body.readableDidRead)) return false; // some of it is gone
    if (verdict === "unsent") return ++this.#failures.unsent < limits.gateDialsMax;
    return verdict === "lost" && isIdempotent(method) && ++this.#failures.lost < limits.gateTriesMax;
  }

  #served(status: number): void {
    const durationMs = performance.now() - this.#beganAt;
    this.#needs.emit({ type: "request.served", route, method: this.#request.method ?? "", status, durationMs });
  }
}

/** In metrics, where nobody was there to be answered: as proxies' logs have it. */
const clientHasGone = 499;

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** An address of IPv4 in the clothes of IPv6 is shown without them. */
const plainAddress = (address = "unknown"): string => (address.startsWith("::ffff:") ? address.slice(7) : address);

type Verdict = "unsent" | "lost" | "late" | "malformed" | "refused";

const malformed = /^(HPE_|UND_ERR_HEADERS_OVERFLOW$|ERR_INVALID_CHAR$|ERR_HTTP_INVALID_|ERR_HTTP_HEADERS_SENT$)/;

/** What an error before the reply says of the worker. */
function verdictOf(error: Error & { code?: string; syscall?: string }): Verdict {
  const { code = "", syscall } = error;
  // undici takes no 100 that was not asked for
  if (error instanceof MalformedReply || (code === "UND_ERR_SOCKET" && error.message === "bad response"))
    return "malformed";
  if (syscall === "connect" || code === "UND_ERR_CONNECT_TIMEOUT") return "unsent";
  if (code === "UND_ERR_HEADERS_TIMEOUT") return "late";
  if (code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH") return "refused";
  return malformed.test(code) ? "malformed" : "lost";
}

function failure(verdict: Verdict): Refusal {
  if (verdict === "refused") return new Refusal("INVALID_INPUT", "The request cannot be sent on: check its headers.");
  if (verdict === "late")
    return new Refusal(
      "WORKER_TIMEOUT",
      "The worker did not begin its reply within the endpoint's executionTimeoutMs.",
    );
  if (verdict === "malformed") return new Refusal("WORKER_FAILED", "The worker's reply was not well-formed HTTP.");
  const advice = "whether the request was carried out is not known.";
  return new Refusal("WORKER_FAILED", `The worker was lost before it replied; ${advice}`);
}
