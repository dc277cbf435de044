import type { Readable } from "node:stream";
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import type { WebSocket } from "ws";
import { realTime } from "../../../clock.js";
import { FairLine } from "../../../domain/fair-line.js";
import { limits } from "../../../limits/index.js";
import type { Access } from "./access.js";
import type { Credential } from "./exec-credential.js";
import { openSocket, SocketRefused } from "./socket.js";

/** The API server has refused a call. */
export class ClusterRefusal extends Error {
  /** The HTTP status. */
  readonly status: number;
  /** Kubernetes' word for it: AlreadyExists, NotFound, Forbidden, Invalid … */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** The API server does not answer, or can do nothing now. The message may be shown to users, the detail to operators. */
export class ClusterAway extends Error {
  readonly detail: string;

  constructor(message: string, detail = message) {
    super(message);
    this.detail = detail;
  }
}

export const statusOf = (error: unknown): number | undefined =>
  error instanceof ClusterRefusal ? error.status : undefined;
export const isAway = (error: unknown): boolean => error instanceof ClusterAway;
/** What an operator should know of a failure. */
export const detailOf = (error: unknown): string =>
  error instanceof ClusterAway ? error.detail : error instanceof Error ? error.message : String(error);

interface Call {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly type?: string;
  readonly signal?: AbortSignal;
  /** How long a stream may be silent; 0: for ever. */
  readonly silenceMs?: number;
  readonly lasts?: boolean;
  /** It belongs to something begun already: it takes turns with all that is to begin. */
  readonly isFollowUp?: boolean;
}

/** Streams have connections of their own: thousands of followed logs must not keep a call waiting. */
interface Connections {
  /** The client's certificate. */
  readonly of: string;
  readonly calls: Dispatcher;
  readonly streams: Dispatcher;
}

/** A cluster's API server: calls, and streams that last. */
export class Cluster {
  readonly server: string;
  readonly #access: Access;
  #connections: Connections | undefined;
  readonly #line = new FairLine(limits.clusterConnectionsMax);
  /** Nodes take part in opening WebSockets: slow ones must not hold up calls. */
  readonly #opening = new FairLine(limits.clusterConnectionsMax);
  /** Those that are opened in each lane: one hung node must not hold up the others. */
  readonly #lanes = new Map<number, { readonly line: FairLine; users: number }>();

  constructor(access: Access) {
    this.#access = access;
    this.server = access.server;
  }

  /** Calls the API server. Throws {@link ClusterRefusal} or {@link ClusterAway}. */
  ask<T>(method: Dispatcher.HttpMethod, path: string, call: Call = {}): Promise<T> {
    // a call's time begins when it is sent: thousands at once would time out while they wait for each other
    return this.#line.do(call.isFollowUp ? 1 : 0, () => this.#ask<T>(method, path, call));
  }

  async #ask<T>(method: Dispatcher.HttpMethod, path: string, call: Call): Promise<T> {
    const late = realTime.abortAfter(limits.clusterAnswerMs);
    const signal = call.signal ? AbortSignal.any([late, call.signal]) : late;
    const reply = await this.#send(method, path, { ...call, signal });
    return (await this.#json(reply, signal)) as T;
  }

  /** Opens a stream: a watch, or a log. It ends when `signal` aborts. */
  async stream(path: string, call: Call & { readonly signal: AbortSignal }): Promise<Readable> {
    return (await this.#send("GET", path, { ...call, lasts: true })).body;
  }

  /**
   * Opens a WebSocket, which the caller closes; it is paused until it is resumed. Those of different `lane` take turns.
   * Throws as {@link ask} does.
   */
  async openSocket(path: string, lane: number): Promise<WebSocket> {
    const late = realTime.abortAfter(limits.clusterSocketMs);
    const giveUp = new Promise<never>((_, reject) => {
      late.addEventListener("abort", () => reject(this.#away(new Error("it does not answer in time"))), { once: true });
    });
    giveUp.catch(() => {});
    const opened = this.#inLane(lane, async () => {
      if (late.aborted) throw this.#away(new Error("too much waits for it"));
      return this.#socket(path, late);
    });
    return Promise.race([opened, giveUp]);
  }

  async #inLane<T>(lane: number, work: () => Promise<T>): Promise<T> {
    const own = this.#lanes.get(lane) ?? { line: new FairLine(limits.clusterSocketsOpening), users: 0 };
    this.#lanes.set(lane, own);
    own.users++;
    try {
      return await own.line.do(0, () => this.#opening.do(lane, work));
    } finally {
      if (--own.users === 0) this.#lanes.delete(lane);
    }
  }

  async #socket(path: string, signal: AbortSignal): Promise<WebSocket> {
    try {
      return await this.#trySocket(path, signal, await this.#credential());
    } catch (error) {
      if (statusOf(error) !== 401) throw error;
      return this.#trySocket(path, signal, await this.#credential(true));
    }
  }

  async #trySocket(path: string, signal: AbortSignal, credential: Credential): Promise<WebSocket> {
    const { proxy } = this.#access;
    try {
      return await openSocket(`${this.server.replace(/^http/, "ws")}${path}`, {
        tls: this.#tlsFor(credential),
        headers: { "user-agent": "millrace", ...authorizationOf(credential) },
        proxy,
        signal,
      });
    } catch (error) {
      throw error instanceof SocketRefused ? this.#refusal(error.status, error.text) : this.#away(error);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#connections?.calls.destroy(), this.#connections?.streams.destroy()]);
  }

  async #send(method: Dispatcher.HttpMethod, path: string, call: Call): Promise<Dispatcher.ResponseData> {
    let reply = await this.#try(method, path, call, await this.#credential());
    if (reply.statusCode === 401) {
      await reply.body.dump();
      reply = await this.#try(method, path, call, await this.#credential(true));
    }
    if (reply.statusCode < 300) return reply;
    throw this.#refusal(reply.statusCode, await reply.body.text().catch(() => ""));
  }

  async #credential(isRefused = false): Promise<Credential> {
    try {
      return await this.#access.credential(isRefused);
    } catch (error) {
      throw new ClusterAway("the cluster's credentials cannot be had now", detailOf(error));
    }
  }

  async #try(method: Dispatcher.HttpMethod, path: string, call: Call, credential: Credential) {
    const { query = {}, body, type = "application/json", signal } = call;
    const asked = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    ) as [string, string][];
    const search = asked.length === 0 ? "" : `?${new URLSearchParams(asked)}`;
    try {
      return await request(`${this.server}${path}${search}`, {
        method,
        dispatcher: this.#connectionsFor(credential)[call.lasts ? "streams" : "calls"],
        headers: {
          accept: "application/json",
          "user-agent": "millrace",
          ...authorizationOf(credential),
          ...(body === undefined ? {} : { "content-type": type }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        ...(signal ? { signal } : {}),
        headersTimeout: limits.clusterAnswerMs,
        bodyTimeout: call.silenceMs ?? limits.clusterAnswerMs,
      });
    } catch (error) {
      throw this.#away(error);
    }
  }

  /** The present connections; new ones when the client's certificate is a new one. */
  #connectionsFor({ cert, key }: Credential): Connections {
    const of = cert ?? "";
    if (this.#connections?.of === of) return this.#connections;
    const { proxy } = this.#access;
    const connect = { ...this.#tlsFor({ cert, key }), timeout: limits.clusterConnectMs, allowH2: false };
    const open = (options: { connections?: number }): Dispatcher =>
      proxy === undefined
        ? new Agent({ ...options, connect })
        : new ProxyAgent({ ...options, uri: proxy, requestTls: connect });
    const before = this.#connections;
    this.#connections = { of, calls: open({ connections: limits.clusterConnectionsMax }), streams: open({}) };
    for (const each of [before?.calls, before?.streams]) void each?.close();
    return this.#connections;
  }

  /** How the API server is trusted, and who we are to it. */
  #tlsFor({ cert, key }: Credential) {
    const { ca, isUnverified, serverName } = this.#access;
    return {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(serverName === undefined ? {} : { servername: serverName }),
      ...(isUnverified ? { rejectUnauthorized: false } : {}),
    };
  }

  async #json(reply: Dispatcher.ResponseData, signal: AbortSignal): Promise<unknown> {
    const parts: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const part of reply.body as AsyncIterable<Buffer>) {
        bytes += part.length;
        if (bytes > limits.clusterReplyBytesMax) throw new Error("its reply is too large");
        parts.push(part);
      }
    } catch (error) {
      throw this.#away(signal.aborted ? new Error("it does not answer in time") : error);
    }
    try {
      return JSON.parse(Buffer.concat(parts).toString("utf8"));
    } catch {
      throw this.#away(new Error("the reply is not from a Kubernetes API: another server may have its address"));
    }
  }

  #refusal(status: number, reply: string): Error {
    const text = reply.slice(0, limits.clusterMessageCharsMax);
    const { reason, message = text, isKubernetes } = statusIn(text);
    // busy, or a server behind it is down: it may be asked again. What is without its words is a proxy's
    if (status === 429 || status >= 500 || (status !== 401 && !isKubernetes)) {
      const said = `${status} ${message.slice(0, 200)}`.trim();
      // what guards the cluster is down, or refuses for now: who waits should read which, and why
      const its = isKubernetes && /webhook|\bdenied\b/.test(message) ? `: ${message.slice(0, 200)}` : "";
      return new ClusterAway(
        `the cluster cannot do it now${its}`,
        `the cluster at ${this.server} cannot do it now: ${said}`,
      );
    }
    return new ClusterRefusal(status, reason ?? "", message || `status ${status}`);
  }

  #away(error: unknown): ClusterAway {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = `does not answer (${code ?? message})`;
    return new ClusterAway(`the cluster ${why}`, `the cluster at ${this.server} ${why}`);
  }
}

function authorizationOf({ token, basic }: Credential): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  return basic === undefined ? {} : { authorization: `Basic ${basic}` };
}

/** Kubernetes' own words in a refusal; none if a proxy has refused. */
function statusIn(text: string): {
  readonly reason?: string;
  readonly message?: string;
  readonly isKubernetes: boolean;
} {
  try {
    const status = JSON.parse(text) as { readonly kind?: string; readonly reason?: string; readonly message?: string };
    return status.kind === "Status" ? { ...status, isKubernetes: true } : { isKubernetes: false };
  } catch {
    return { isKubernetes: false };
  }
}
