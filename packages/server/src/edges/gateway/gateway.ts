import { Agent, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { realTime } from "../../clock.js";
import type { PingAnswer } from "../../domain/workers/health.js";
import type { Worker } from "../../domain/workers/worker.js";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { Marks, passedOn } from "../../operations/access/server-marks.js";
import type { Needs } from "../../operations/needs.js";
import { turns } from "../../turns.js";
import { hasTooManyHeaders, refuseUnread } from "../shared/bodies/refuse-unread.js";
import type { HostJudge } from "../shared/connections/host-names.js";
import type { Connections } from "../shared/connections/keep-room.js";
import { misframed } from "../shared/connections/misframed.js";
import { laneOf } from "../shared/lanes.js";
import { Ahead } from "./ahead.js";
import { hasBody } from "./body.js";
import { Call, type Calling } from "./call.js";
import { Dialler } from "./connections/dialler.js";
import { afterReplies, plainAgain } from "./plain-again.js";
import { type Target, targetOf } from "./target.js";

export interface GatewayOptions {
  /** The domain under which each endpoint has a host name of its own. */
  readonly domain: string | undefined;
  /** Whether `X-Forwarded-*` headers are trusted, because a proxy of ours is in front. */
  readonly isProxyTrusted: boolean;
  /** Whether a request's Host is ours; if absent, every Host is. */
  readonly isOurHost?: HostJudge;
  /** Counts connections, WebSockets' included, as their owners'. */
  readonly connections?: Connections;
}

/** Serves requests for workers' own HTTP servers. */
export interface Gateway {
  /** Returns whether it has taken the request. */
  take(request: IncomingMessage, reply: ServerResponse): boolean;
  /** Handles upgrade requests: passes WebSockets to workers, and serves others as if they had not asked to upgrade. */
  listen(server: Server): void;
  /** Asks a worker for its health. */
  ping(worker: Worker): Promise<PingAnswer>;
  /** Forgets a worker that has ended. */
  forget(workerNo: number): void;
  close(): Promise<void>;
}

/**
 * Passes load-balanced requests and WebSockets on to workers. They bypass the routes, so that their bodies are not read
 * here.
 */
export function openGateway(
  needs: Omit<Calling, "dialler" | "isProxyTrusted" | "marks" | "agent" | "connections"> & Needs<"ids">,
  options: GatewayOptions,
): Gateway {
  const dialler = new Dialler(needs.here);
  const agent = new Agent({ keepAlive: true, scheduling: "lifo", timeout: limits.gateIdleMs });
  const marks = new Marks(needs);
  const { isProxyTrusted, connections } = options;
  const calling: Calling = { ...needs, dialler, isProxyTrusted, marks, agent, connections };
  const domain = options.domain?.toLowerCase();
  const sockets = new Set<Duplex>();

  /**
   * The target of a load-balanced request. If a server passed it on, the path names the endpoint, and Host is still the
   * client's.
   */
  function target({ url = "", headers }: IncomingMessage): Target | undefined {
    const named = headers[passedOn] === undefined ? undefined : targetOf(url, undefined, undefined);
    return named ?? targetOf(url, headers.host, domain);
  }

  /**
   * Skips the Host check for a passed-on request: the first server has checked its Host, and the mark, which is checked
   * next, proves that.
   */
  const refusalOf = (request: IncomingMessage) =>
    misframed(request, request.headers[passedOn] === undefined ? options.isOurHost : undefined);

  const isWebSocket = ({ headers, method }: IncomingMessage): boolean =>
    headers.upgrade?.toLowerCase() === "websocket" && method === "GET";

  function upgrade(asked: Target, request: IncomingMessage, socket: Duplex, ahead: Ahead): void {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    const reply = new ServerResponse(request);
    reply.shouldKeepAlive = false;
    reply.assignSocket(socket as never);
    reply.once("finish", () => hangUp(socket, ahead));
    const call = new Call(calling, request, reply, asked, { socket, ahead, reply });
    const refusal = refusalOf(request) ?? (hasBody(request) ? withBody() : undefined);
    if (refusal) call.refuse(refusal);
    else call.begin();
  }

  return {
    take(request, reply) {
      const asked = target(request);
      if (!asked) return false;
      const call = new Call(calling, request, reply, asked);
      const refusal = refusalOf(request);
      if (refusal) call.refuse(refusal);
      else call.begin();
      return true;
    },
    listen(server) {
      server.on("upgrade", (request, socket, head) => {
        // Node leaves error handling to us; a connection may ask to upgrade repeatedly
        if (!socket.listeners("error").includes(ignore)) socket.on("error", ignore);
        if (hasTooManyHeaders(request)) {
          socket.resume();
          refuseUnread("HPE_HEADER_OVERFLOW", socket as Socket);
          return;
        }
        const asked = isWebSocket(request) ? target(request) : undefined;
        if (asked) {
          // a client must wait for the reply before it sends frames (RFC 6455, 4.1): this one did not
          const ahead = new Ahead(socket, head, () => socket.destroy());
          const begin = () => upgrade(asked, request, socket, ahead);
          afterReplies(socket, () => (turns.isOver ? turns.wait(laneOf(needs, request), begin) : begin()));
          return;
        }
        // never agree to another protocol: such tunnels are used to smuggle requests past proxies
        const ahead = new Ahead(socket, head, () => socket.pause());
        afterReplies(socket, () => plainAgain(server, request, socket, ahead.take()));
      });
    },
    ping: (worker) => dialler.ping(worker),
    forget: (workerNo) => dialler.forget(workerNo),
    async close() {
      for (const socket of sockets) socket.destroy();
      agent.destroy();
      await dialler.close();
    },
  };
}

/**
 * Ends a connection after a refused upgrade: discards what its client still sends, and closes the connection if the
 * client does not.
 */
function hangUp(socket: Duplex, ahead: Ahead): void {
  ahead.take();
  const late = realTime.after(limits.gateHangUpMs, () => socket.destroy());
  socket.once("close", () => realTime.cancel(late));
  socket.end();
  socket.resume();
}

const ignore = () => {};
const withBody = () => new Refusal("INVALID_INPUT", "A request for a WebSocket has no body.");
