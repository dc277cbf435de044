import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

const unread = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "INVALID_INPUT",
    "The request's headers are too large or too many.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "INVALID_INPUT", "The request took too long to arrive."],
  RESULT_STALLED: ["503 Service Unavailable", "UNAVAILABLE", "The result took too long to arrive; send it again."],
} as const;
/** Why a request could not be read. */
export type Unread = keyof typeof unread;
const malformed = ["400 Bad Request", "INVALID_INPUT", "The request is not well-formed HTTP."] as const;

/**
 * Replies to a request that could not be read, in the shape of all errors, unless a reply has begun already. A client
 * that does not close the connection afterwards is disconnected.
 */
export function refuseUnread(
  code: string | undefined,
  socket: Socket & { _httpMessage?: { headersSent: boolean } },
): void {
  if (!socket.writable || socket._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const [status, word, error] = unread[code as Unread] ?? malformed;
  const body = JSON.stringify({ error, code: word, requestId: randomUUID() });
  const type = "content-type: application/json; charset=utf-8";
  const lines = [`HTTP/1.1 ${status}`, type, `content-length: ${Buffer.byteLength(body)}`, "connection: close"];
  // an idle timeout would not end a connection on which the client keeps sending a little
  const late = realTime.after(limits.lingerMs, () => socket.destroy()).unref();
  socket.once("close", () => realTime.cancel(late));
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** Thousands of empty headers fit within their bound in bytes, and each costs time. */
export const hasTooManyHeaders = ({ rawHeaders }: IncomingMessage): boolean =>
  rawHeaders.length > 2 * limits.headersMax;
