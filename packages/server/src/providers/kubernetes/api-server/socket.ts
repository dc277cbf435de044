import type { Agent, IncomingMessage } from "node:http";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { WebSocket } from "ws";
import { limits } from "../../../limits/index.js";

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
  const agent = proxy === undefined ? undefined : await agentFor(proxy);
  const name = tls.servername ?? new URL(url).hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = new WebSocket(url, ["v4.channel.k8s.io"], {
      ...tls,
      // through a proxy Node would look for the proxy's name, if the API server has none
      checkServerIdentity: ((_host: string, certificate: PeerCertificate) =>
        checkServerIdentity(name, certificate)) as never,
      ...(agent ? { agent } : {}),
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

/** Loaded only where there is a proxy. */
async function agentFor(proxy: string): Promise<Agent> {
  if (/^socks/i.test(proxy)) return new (await import("socks-proxy-agent")).SocksProxyAgent(proxy);
  return new (await import("https-proxy-agent")).HttpsProxyAgent(proxy);
}
