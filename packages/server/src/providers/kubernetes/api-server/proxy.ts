import { request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import type { Socket } from "node:net";
import { limits } from "../../../limits/index.js";

/**
 * Connects to a server through a kubeconfig's proxy: http://, https:// or socks5://, with the user and the password in
 * it, if any. Nothing is left of it once `signal` aborts.
 */
export async function connectThrough(proxy: string, target: URL, signal: AbortSignal): Promise<Socket> {
  const port = Number(target.port || 443);
  const asked = new URL(proxy);
  if (!asked.protocol.startsWith("socks")) return askFor(`${target.hostname}:${port}`, asked, signal);
  const { SocksClient } = await import("socks"); // loaded only where it is needed
  const { socket } = await SocksClient.createConnection({
    command: "connect",
    destination: { host: hostOf(target), port },
    proxy: {
      host: asked.hostname,
      port: Number(asked.port || 1_080),
      type: 5,
      ...(asked.username ? { userId: decodeURIComponent(asked.username) } : {}),
      ...(asked.password ? { password: decodeURIComponent(asked.password) } : {}),
    },
    timeout: limits.clusterSocketMs,
  });
  if (signal.aborted) socket.destroy();
  signal.throwIfAborted();
  return socket;
}

/** A URL's host as names and addresses are written elsewhere: an IPv6 address without its brackets. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

function askFor(target: string, proxy: URL, signal: AbortSignal): Promise<Socket> {
  const user = [proxy.username, proxy.password].map(decodeURIComponent).join(":");
  const authorization = `Basic ${Buffer.from(user).toString("base64")}`;
  const headers = { host: target, ...(proxy.username ? { "proxy-authorization": authorization } : {}) };
  const open = proxy.protocol === "https:" ? secureRequest : plainRequest;
  return new Promise((resolve, reject) => {
    const asked = open(proxy.origin, { method: "CONNECT", path: target, headers, agent: false, signal });
    asked.once("connect", ({ statusCode }, socket: Socket) => {
      if (statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(new Error(`its proxy refuses to connect: status ${statusCode}`));
    });
    asked.on("error", reject).end();
  });
}
