import type { IncomingMessage } from "node:http";
import { isIP, type Socket } from "node:net";
import { checkServerIdentity, connect, type PeerCertificate } from "node:tls";
import { WebSocket } from "ws";
import { limits } from "../../../limits/index.js";
import { connectThrough, hostOf } from "./proxy.js";

/** An upgrade was refused. */
export class SocketRefused extends Error {
  /** The HTTP status. */
  readonly status: number;
  readonly text: string;

  constructor(status: number, text: string) {
    super(`status ${status}`);
    this.status = status;
    this.text = text;
  }
}

interface SocketOptions {
  readonly tls: { readonly servername?: string } & Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** http://, https:// or socks5:// */
  readonly proxy: string | undefined;
  /** Gives up, however far it has come. */
  readonly signal: AbortSignal;
}

/**
 * Opens a WebSocket for one of Kubernetes' protocols of numbered channels. It is paused: nothing that comes is missed
 * before somebody listens and resumes it. Rejects with {@link SocketRefused}, or why there was no answer.
 */
export async function openSocket(url: string, { tls, headers, proxy, signal }: SocketOptions): Promise<WebSocket> {
  const target = new URL(url);
  const carrier = proxy === undefined ? undefined : await connectThrough(proxy, target, signal);
  const name = tls.servername ?? hostOf(target);
  const secured = {
    ...tls,
    // through a proxy Node would look for the proxy's name, if the API server has none
    checkServerIdentity: ((_host: string, certificate: PeerCertificate) =>
      checkServerIdentity(name, certificate)) as never,
  };
  const onCarrier = () =>
    target.protocol === "wss:"
      ? connect({ ...secured, servername: isIP(name) ? "" : name, socket: carrier as Socket })
      : (carrier as Socket);
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = new WebSocket(url, ["v4.channel.k8s.io"], {
      ...secured,
      ...(carrier ? { createConnection: onCarrier as never } : {}),
      headers,
      perMessageDeflate: false,
      maxPayload: limits.clusterMessageBytesMax,
    });
    const giveUp = () => {
      reject(new Error("it does not answer in time"));
      socket.terminate();
    };
    signal.addEventListener("abort", giveUp, { once: true });
    const isIn = () => signal.removeEventListener("abort", giveUp);
    socket.once("upgrade", ({ socket: carrier }) => carrier.setKeepAlive(true, limits.gateKeepAliveMs));
    socket.once("open", () => {
      isIn();
      socket.pause();
      resolve(socket);
    });
    socket.once("unexpected-response", (_, reply) => {
      void textOf(reply, signal).then((text) => {
        reject(new SocketRefused(reply.statusCode ?? 0, text));
        socket.terminate();
      });
    });
    socket.on("error", reject); // later ones are those of who uses it
    socket.once("close", isIn);
  });
}

/** The beginning of a refusal. */
function textOf(reply: IncomingMessage, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const end = () => {
      signal.removeEventListener("abort", end);
      reply.destroy();
      resolve(text);
    };
    signal.addEventListener("abort", end, { once: true });
    reply.setEncoding("utf8");
    reply.on("data", (part: string) => {
      text += part;
      if (text.length > limits.clusterMessageCharsMax) end();
    });
    reply.once("close", end).on("error", end);
  });
}
