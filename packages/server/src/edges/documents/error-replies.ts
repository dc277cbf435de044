import { STATUS_CODES } from "node:http";
import { bodyTooLarge, forbidden, invalid, logElsewhere, Refusal, unauthorized } from "../../errors.js";

/** When a status is sent, and a refusal that has it. */
const errors: Readonly<Record<number, readonly [when: string, example: Refusal]>> = {
  400: [
    "The request breaks a rule, or the resource is in a state that does not allow it. Nothing was changed.",
    invalid("'workersMin' must be <= 10000."),
  ],
  401: ["There is no valid key in the Authorization header, or the key may not do this.", unauthorized()],
  403: ["The key is valid and may not do this.", forbidden("This key may only read.")],
  404: [
    "There is no such resource for this key.",
    new Refusal("NOT_FOUND", "There is no template 'jx1k2m3n4p5q6r' for this key."),
  ],
  409: [
    "The log is kept by another host, or, in REST v2, the resource is in a state that does not allow this.",
    logElsewhere(2),
  ],
  413: ["The body is larger than this operation takes.", bodyTooLarge(10_485_760)],
  415: ["The body is compressed.", new Refusal("UNSUPPORTED_ENCODING", "Send the body without a content encoding.")],
  422: [
    "The body or the query does not have the described form; the text names the field.",
    invalid("'workers.min' must be >= 0."),
  ],
  429: [
    "Too many requests, or a full queue. Retry-After says when to try again.",
    new Refusal("RATE_LIMITED", "Too many requests to this operation: at most 1000 in 10 s; wait and try again."),
  ],
  500: [
    "A defect of the server; its log has the cause under the request's id.",
    new Refusal("INTERNAL", "Something went wrong on our side; the server's log says what, under this requestId."),
  ],
  503: [
    "The server is busy, stopping, or has no database. Retry-After says when to try again.",
    new Refusal("UNAVAILABLE", "The server is stopping; try again."),
  ],
  507: [
    "The disk, or the space of this user, is full.",
    new Refusal("STORAGE_FULL", "The disk is full; free some space and try again."),
  ],
};

/** When to try again, which replies with 429 and 503 say. */
export const retryAfter = {
  description: "Seconds until it is worth trying again.",
  schema: { type: "integer" },
  example: 1,
};

const requestId = "2b3df08e-9f90-479b-8814-e037101b2a01";
const problemType = "application/problem+json";

/**
 * The reply of every error with this status, and its name among the document's components: NotFound, or NotFoundProblem for
 * REST v2. Undefined if there are no words for it.
 */
export function errorReply(
  status: number,
  type: string,
  schema: object,
): { readonly name: string; readonly reply: object } | undefined {
  const [when, refusal] = errors[status] ?? [];
  if (when === undefined || refusal === undefined) return undefined;
  const { message, code } = refusal;
  const title = STATUS_CODES[status] ?? "";
  const isProblem = type === problemType;
  const saysWhen = status === 429 || status === 503;
  const headers = { "retry-after": { $ref: "#/components/headers/RetryAfter" } };
  const mistakes = status === 400 || status === 422 ? { errors: [message] } : {};
  const example = isProblem
    ? { title, status, detail: message, ...mistakes, code, requestId }
    : { error: message, code, requestId };
  return {
    name: `${title.replace(/[^A-Za-z]/g, "")}${isProblem ? "Problem" : ""}`,
    reply: { description: when, ...(saysWhen && { headers }), content: { [type]: { schema, example } } },
  };
}
