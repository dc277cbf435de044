import { STATUS_CODES } from "node:http";
import type { RefusalCode } from "@millrace/api";

interface Words {
  readonly when: string;
  readonly code: RefusalCode;
  readonly sentence: string;
}

const words: Readonly<Record<number, Words>> = {
  400: {
    when: "The request breaks a rule, or the resource is in a state that does not allow it. Nothing was changed.",
    code: "INVALID_INPUT",
    sentence: "'workersMin' must be <= 10000.",
  },
  401: {
    when: "There is no valid key in the Authorization header, or the key may not do this.",
    code: "UNAUTHORIZED",
    sentence: "Send a valid API key in the Authorization header.",
  },
  403: {
    when: "The key is valid and may not do this.",
    code: "UNAUTHORIZED",
    sentence: "This key may only read.",
  },
  404: {
    when: "There is no such resource for this key.",
    code: "NOT_FOUND",
    sentence: "There is no template 'jx1k2m3n4p5q6r' for this key.",
  },
  409: {
    when: "The resource is in a state that does not allow this.",
    code: "INVALID_STATE",
    sentence: "The pod is running; stop it first.",
  },
  413: {
    when: "The body is larger than this operation takes.",
    code: "PAYLOAD_TOO_LARGE",
    sentence: "The body is larger than the 10 MB that this route takes.",
  },
  415: {
    when: "The body is compressed.",
    code: "UNSUPPORTED_ENCODING",
    sentence: "Send the body without a content encoding.",
  },
  422: {
    when: "The body or the query does not have the described form; the text names the field.",
    code: "INVALID_INPUT",
    sentence: "'workers.min' must be >= 0.",
  },
  429: {
    when: "Too many requests, or a full queue. Retry-After says when to try again.",
    code: "RATE_LIMITED",
    sentence: "Too many requests to this operation: at most 1000 in 10 s; wait and try again.",
  },
  500: {
    when: "A defect of the server; its log has the cause under the request's id.",
    code: "INTERNAL",
    sentence: "Something went wrong on our side; the server's log says what, under this requestId.",
  },
  503: {
    when: "The server is busy, stopping, or has no database. Retry-After says when to try again.",
    code: "UNAVAILABLE",
    sentence: "The server is stopping; try again.",
  },
  507: {
    when: "The disk, or the space of this user, is full.",
    code: "STORAGE_FULL",
    sentence: "The disk is full; free some space and try again.",
  },
};

const requestId = "01k9z4d7t3w8q5m2v6x1";
export const problemType = "application/problem+json";

/** The name of an error's reply among the document's components: NotFound, or NotFoundProblem for REST v2. */
export const errorName = (status: number, type: string): string =>
  `${(STATUS_CODES[status] ?? "").replace(/[^A-Za-z]/g, "")}${type === problemType ? "Problem" : ""}`;

/** The reply of every error with this status; undefined if there are no words for it. */
export function errorReply(status: number, type: string, schema: object): object | undefined {
  const { when, code, sentence } = words[status] ?? {};
  if (when === undefined) return undefined;
  const errors = status === 400 || status === 422 ? { errors: [sentence] } : {};
  const example =
    type === problemType
      ? { title: STATUS_CODES[status], status, detail: sentence, ...errors, code, requestId }
      : { error: sentence, code, requestId };
  return { description: when, content: { [type]: { schema, example } } };
}
