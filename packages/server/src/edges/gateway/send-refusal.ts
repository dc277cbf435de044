import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Refusal } from "../../errors.js";
import { jsonHeaders, refusalText } from "../shared/replies/replies.js";
import { declined } from "./mark.js";
import type { Declined } from "./verdict.js";

/** Replies with a refusal; `givenBack` tells the server that passed the request on what happened. */
export function sendRefusal(
  reply: ServerResponse,
  requestId: string,
  refusal: Refusal,
  givenBack?: Declined["verdict"],
): void {
  const text = refusalText(refusal, requestId);
  const headers = jsonHeaders(requestId, refusal);
  headers.push("content-length", String(Buffer.byteLength(text)));
  if (givenBack !== undefined) headers.push(declined, givenBack);
  // with the standard reason phrase: a worker's reply that could not be passed on has left its own
  reply.writeHead(refusal.status, STATUS_CODES[refusal.status] ?? "", headers);
  reply.end(text);
}
