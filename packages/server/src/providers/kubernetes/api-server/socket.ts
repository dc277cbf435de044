import type { Agent, IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import { realTime } from "../../../clock.js";
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
  readonly tls: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** http://, https:// or socks5:// */
  readonly proxy: string | undefined;
}

/**
 * Opens a WebSocket for one of Kubernetes' protocols of numbered channels. It is paused: nothing that comes is missed
 * before somebody listens and resumes it. Rejects with {@link SocketRefused}, or why there was no answer.
 */
export async function openSocket(url: string, { tls, headers, proxy }: SocketOptions): Promise<WebSocket> {
  const agent = proxy === undefined ? undefined : await agentFor(proxy);
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, ["v4.channel.k8s.io"], {
      ...tls,
      ...(agent ? { agent } : {}),
      headers,
      handshakeTimeout: limits.clusterSocketMs,
      perMessageDeflate: false,
      maxPayload: limits.clusterMessageBytesMax,
    });
    socket.once("upgrade", ({ socket: carrier }) => carrier.setKeepAlive(true, limits.gateKeepAliveMs));
    socket.once("open", () => {
      socket.pause();
      resolve(socket);
    });
    socket.once("unexpected-response", (_, reply) => {
      void textOf(reply).then((text) => {
        reject(new SocketRefused(reply.statusCode ?? 0, text));
        socket.terminate();
      });
    });
    socket.on("error", reject); // later ones are those of who uses it
  });
}

/** The beginning of a refusal. */
function textOf(reply: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const end = () => {
      realTime.cancel(late);
      reply.destroy();
      resolve(text);
    };
    const late = realTime.after(limits.clusterSocketMs, end);
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
