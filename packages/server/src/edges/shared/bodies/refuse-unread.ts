import { randomUUID } from "node:crypto";
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { realTime } from "../../../clock.js";
import { Refusal } from "../../../errors.js";
import { limits } from "../../../limits/index.js";
import { jsonHeaders, refusalText } from "../replies/replies.js";

export function tooManyBodies(): Refusal {
  const words = "Too many large bodies are on their way; try again in a second.";
  return new Refusal("UNAVAILABLE", words, { retryAfterSeconds: 1 });
}

const unread = {
  HPE_HEADER_OVERFLOW: new Refusal("HEADERS_TOO_LARGE", "The request's headers are too large or too many."),
  ERR_HTTP_REQUEST_TIMEOUT: new Refusal("REQUEST_TIMEOUT", "The request took too long to arrive."),
  BODY_HELD_UP: tooManyBodies(),
  RESULT_STALLED: new Refusal("UNAVAILABLE", "The result took too long to arrive; send it again."),
} as const;
/** Why a request could not be read. */
export type Unread = keyof typeof unread;
const malformed = new Refusal("INVALID_INPUT", "The request is not well-formed HTTP.");

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
  const refusal = unread[code as Unread] ?? malformed;
  const requestId = randomUUID();
  const body = refusalText(refusal, requestId);
  const headers = [...jsonHeaders(requestId, refusal), "content-length", String(Buffer.byteLength(body))];
  const lines = [`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`];
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  lines.push("connection: close");
  // an idle timeout would not end a connection on which the client keeps sending a little
  const late = realTime.after(limits.lingerMs, () => socket.destroy()).unref();
  socket.once("close", () => realTime.cancel(late));
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** Thousands of empty headers fit within their bound in bytes, and each costs time. */
export const hasTooManyHeaders = ({ rawHeaders }: IncomingMessage): boolean =>
  rawHeaders.length > 2 * limits.headersMax;
