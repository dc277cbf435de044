import Type, { type Static } from "typebox";

/** Every refusal that a caller can get: its HTTP status, and whether retrying the same request may help. */
export const refusals = {
  INVALID_INPUT: { status: 400, retryable: false },
  INVALID_JSON: { status: 400, retryable: false },
  INVALID_STATE: { status: 400, retryable: false },
  IDEMPOTENCY_CONFLICT: { status: 400, retryable: false },
  IN_USE: { status: 400, retryable: false },
  NOT_OFFERED_HERE: { status: 400, retryable: false },
  QUOTA_REACHED: { status: 400, retryable: false },
  UNAUTHORIZED: { status: 401, retryable: false },
  NOT_FOUND: { status: 404, retryable: false },
  ENDPOINT_NOT_FOUND: { status: 404, retryable: false },
  JOB_NOT_FOUND: { status: 404, retryable: false },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false },
  REQUEST_TIMEOUT: { status: 408, retryable: true },
  LOG_ELSEWHERE: { status: 409, retryable: true },
  PAYLOAD_TOO_LARGE: { status: 413, retryable: false },
  UNSUPPORTED_ENCODING: { status: 415, retryable: false },
  RATE_LIMITED: { status: 429, retryable: true },
  QUEUE_FULL: { status: 429, retryable: true },
  HEADERS_TOO_LARGE: { status: 431, retryable: false },
  INTERNAL: { status: 500, retryable: true },
  WORKER_FAILED: { status: 502, retryable: true },
  UNAVAILABLE: { status: 503, retryable: true },
  NO_WORKER: { status: 503, retryable: true },
  WORKER_TIMEOUT: { status: 504, retryable: true },
  STORAGE_FULL: { status: 507, retryable: true },
} as const;
export type RefusalCode = keyof typeof refusals;

/** The body of every error reply. */
export const ErrorBody = Type.Object({
  error: Type.String({ description: "One sentence that tells a person what to do." }),
  code: Type.String({ description: "A code for programs, in capitals." }),
  requestId: Type.String({ description: "The same as the X-Request-ID header." }),
});
export type ErrorBody = Static<typeof ErrorBody>;
