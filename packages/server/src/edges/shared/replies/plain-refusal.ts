import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Refusal } from "../../../errors.js";
import { jsonHeaders, refusalText } from "./replies.js";

/** Replies with a refusal outside the router, in the shape of all errors. `more`: names and values of further headers. */
export function sendPlainRefusal(
  reply: ServerResponse,
  requestId: string,
  refusal: Refusal,
  more: readonly string[] = [],
): void {
  const text = refusalText(refusal, requestId);
  const headers = [...jsonHeaders(requestId, refusal), "content-length", String(Buffer.byteLength(text)), ...more];
  // with the standard reason phrase: a worker's reply that could not be passed on has left its own
  reply.writeHead(refusal.status, STATUS_CODES[refusal.status] ?? "", headers);
  reply.end(text);
}
