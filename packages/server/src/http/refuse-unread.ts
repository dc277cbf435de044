import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { limits } from "../limits.js";

const unread: Readonly<Record<string, readonly [status: string, sentence: string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "The request's headers are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "The request took too long to arrive."],
};

/**
 * Answers a request that could not be read, in the shape of every error; never into an answer that has begun. A client that
 * does not hang up after that is hung up on.
 */
export function refuseUnread(
  code: string | undefined,
  socket: Socket & { _httpMessage?: { headersSent: boolean } },
): void {
  if (!socket.writable || socket._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const [status, error] = unread[code ?? ""] ?? ["400 Bad Request", "The request is not well-formed HTTP."];
  const body = JSON.stringify({ error, code: "INVALID_INPUT", requestId: randomUUID() });
  const type = "content-type: application/json; charset=utf-8";
  const lines = [`HTTP/1.1 ${status}`, type, `content-length: ${Buffer.byteLength(body)}`, "connection: close"];
  socket.setTimeout(limits.lingerMs, () => socket.destroy());
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
