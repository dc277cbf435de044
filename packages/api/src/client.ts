import type { Static } from "typebox";
import type { ErrorBody } from "./errors.js";
import type { HealthBody, StatusBody, Submission } from "./jobs.js";
import type { Problem } from "./v2/problems.js";

export { eventsOf, type SentEvent } from "./sent-events.js";

/** An error reply, with the service's code and message. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  /** From the body of an error reply: REST v2's management has one of its own. */
  constructor(status: number, body: ErrorBody | Static<typeof Problem>) {
    super("detail" in body ? body.detail : body.error);
    this.status = status;
    this.code = body.code;
    this.requestId = body.requestId;
  }
}

/** The service's URL, and the key for requests. */
export interface ClientOptions {
  readonly url: string;
  readonly key: string;
  /** Reads the JSON of replies, if not `JSON.parse`. */
  readonly parse?: (text: string) => unknown;
  /** Told the names of fields that the service did not know and ignored. */
  readonly onIgnored?: (fields: string) => void;
}

/** The typed client of the queue API: one method per route; errors are thrown as {@link ApiError}. */
export function createClient({ url, key, parse = JSON.parse, onIgnored }: ClientOptions) {
  const call = <T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<T> => callText<T>(method, path, body === undefined ? undefined : JSON.stringify(body), headers);
  /** The same with a body that is JSON text already, which is sent as it stands. */
  async function callText<T>(
    method: string,
    path: string,
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<T> {
    const reply = await fetch(new URL(path, url), {
      method,
      headers: {
        ...headers,
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body }),
    });
    const ignored = reply.headers.get("x-millrace-ignored");
    if (ignored !== null) onIgnored?.(ignored);
    const parsed = reply.status === 204 ? undefined : parse(await reply.text());
    if (!reply.ok) throw new ApiError(reply.status, parsed as ErrorBody);
    return parsed as T;
  }
  /** A reply whose body is read as it comes. */
  async function open(
    path: string,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<Response> {
    const reply = await fetch(new URL(path, url), {
      headers: { ...headers, authorization: `Bearer ${key}` },
      ...(signal ? { signal } : {}),
    });
    if (!reply.ok) throw new ApiError(reply.status, (await reply.json()) as ErrorBody);
    return reply;
  }
  const jobs = (endpointId: string) => `/v2/${encodeURIComponent(endpointId)}`;
  return {
    call,
    callText,
    open,
    run: (endpointId: string, job: Submission) =>
      call<{ id: string; status: string }>("POST", `${jobs(endpointId)}/run`, job),
    runsync: (endpointId: string, job: Submission, waitMs = 90_000) =>
      call<StatusBody>("POST", `${jobs(endpointId)}/runsync?wait=${waitMs}`, job),
    status: (endpointId: string, jobId: string) => call<StatusBody>("GET", `${jobs(endpointId)}/status/${jobId}`),
    cancel: (endpointId: string, jobId: string) =>
      call<{ id: string; status: string }>("POST", `${jobs(endpointId)}/cancel/${jobId}`),
    retry: (endpointId: string, jobId: string) =>
      call<{ id: string; status: string }>("POST", `${jobs(endpointId)}/retry/${jobId}`),
    health: (endpointId: string) => call<HealthBody>("GET", `${jobs(endpointId)}/health`),
  };
}
