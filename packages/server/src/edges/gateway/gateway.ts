import { Agent, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Needs } from "../../operations/needs.js";
import type { HostJudge } from "../shared/connections/host-names.js";
import { misframed } from "../shared/connections/misframed.js";
import { Ahead } from "./ahead.js";
import { Call, type Calling } from "./call.js";
import { Dialler } from "./dialler.js";
import { Marks, passedOn } from "./mark.js";
import { afterReplies, plainAgain } from "./plain-again.js";
import { type Target, targetOf } from "./target.js";

export interface GatewayOptions {
  /** Under which each endpoint has a host name of its own. */
  readonly domain: string | undefined;
  /** Whether what a client says in `X-Forwarded-*` is believed: a proxy of ours stands in front. */
  readonly isProxyTrusted: boolean;
  /** Whether a request is meant for us; all are where it is left out. */
  readonly isOurHost?: HostJudge;
}

/** What stands in front of the workers' own HTTP servers. */
export interface Gateway {
  /** Answers whether it has taken the request. */
  take(request: IncomingMessage, reply: ServerResponse): boolean;
  /** Takes over what clients want to upgrade: WebSockets of ours, and all else as if it had not asked. */
  listen(server: Server): void;
  /** A worker has ended. */
  forget(workerNo: number): void;
  close(): Promise<void>;
}

/** Load-balanced requests and WebSockets, passed on to workers. They come before the routes: their bodies are not read here. */
export function openGateway(
  needs: Omit<Calling, "dialler" | "isProxyTrusted" | "marks" | "agent"> & Needs<"ids">,
  options: GatewayOptions,
): Gateway {
  const dialler = new Dialler(needs.place.hostNo);
  const agent = new Agent({ keepAlive: true, scheduling: "lifo", timeout: limits.gateIdleMs });
  const marks = new Marks(needs);
  const calling: Calling = { ...needs, dialler, isProxyTrusted: options.isProxyTrusted, marks, agent };
  const domain = options.domain?.toLowerCase();
  const sockets = new Set<Duplex>();

  /** What a load-balanced request is for. What servers pass on has its endpoint in the path, and the host that the client named. */
  function target({ url = "", headers }: IncomingMessage): Target | undefined {
    const named = headers[passedOn] === undefined ? undefined : targetOf(url, undefined, undefined);
    return named ?? targetOf(url, headers.host, domain);
  }

  /** The server that passes a request on has judged its host by its own names; its mark proves more, and is checked next. */
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
        // Node has left it to us; a connection may ask again and again
        if (!socket.listeners("error").includes(ignore)) socket.on("error", ignore);
        const asked = isWebSocket(request) ? target(request) : undefined;
        if (asked) {
          // one that says much has not waited for the answer (RFC 6455, 4.1)
          const ahead = new Ahead(socket, head, () => socket.destroy());
          afterReplies(socket, () => upgrade(asked, request, socket, ahead));
          return;
        }
        // a protocol that we do not speak is not agreed to: what is smuggled past a proxy goes through such tunnels
        const ahead = new Ahead(socket, head, () => socket.pause());
        afterReplies(socket, () => plainAgain(server, request, socket, ahead.take()));
      });
    },
    forget: (workerNo) => dialler.forget(workerNo),
    async close() {
      for (const socket of sockets) socket.destroy();
      agent.destroy();
      await dialler.close();
    },
  };
}

/** Ends a connection that is read by nobody: what its client still says is let go, and so is one that does not leave. */
function hangUp(socket: Duplex, ahead: Ahead): void {
  ahead.take();
  const late = setTimeout(() => socket.destroy(), limits.gateHangUpMs);
  socket.once("close", () => clearTimeout(late));
  socket.end();
  socket.resume();
}

const ignore = () => {};
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
const withBody = () => new Refusal("INVALID_INPUT", "A request for a WebSocket has no body.");
