import { RouteAway } from "../../domain/workers/worker-address.js";
import { Refusal } from "../../errors.js";
import { MalformedReply } from "./forward.js";

/**
 * The kind of a failure before the reply; `unsent`: no worker can have seen the request; `unreached`: neither, and it is
 * not the worker's fault.
 */
export type Verdict = "unsent" | "unreached" | "lost" | "late" | "malformed" | "refused";

/** Another server gave a request back because none of its own workers can serve it. */
export class Declined extends Error {
  readonly verdict: "unsent" | "lost";

  constructor(verdict: "unsent" | "lost") {
    super("the other server has declined the request");
    this.verdict = verdict;
  }
}

const malformed = /^(HPE_|UND_ERR_HEADERS_OVERFLOW$|ERR_INVALID_CHAR$|ERR_HTTP_INVALID_|ERR_HTTP_HEADERS_SENT$)/;

/** Classifies an error before the reply. */
export function verdictOf(error: Error & { code?: string; syscall?: string }): Verdict {
  const { code = "", syscall } = error;
  if (error instanceof Declined) return error.verdict;
  if (error instanceof RouteAway) return "unreached";
  // undici does not accept a 100 that was not asked for
  if (error instanceof MalformedReply || (code === "UND_ERR_SOCKET" && error.message === "bad response"))
    return "malformed";
  if (syscall === "connect" || syscall === "getaddrinfo" || code === "UND_ERR_CONNECT_TIMEOUT") return "unsent";
  if (code === "UND_ERR_HEADERS_TIMEOUT") return "late";
  if (code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH") return "refused";
  return malformed.test(code) ? "malformed" : "lost";
}

/** The refusal that tells the client about a failure. */
export function failure(verdict: Verdict): Refusal {
  if (verdict === "refused") return new Refusal("INVALID_INPUT", "The request cannot be forwarded: check its headers.");
  if (verdict === "late")
    return new Refusal(
      "WORKER_TIMEOUT",
      "The worker did not begin its reply within the endpoint's executionTimeoutMs.",
    );
  if (verdict === "malformed") return new Refusal("WORKER_FAILED", "The worker's reply was not well-formed HTTP.");
  if (verdict === "unsent" || verdict === "unreached")
    return new Refusal("WORKER_FAILED", "No worker accepted a connection; the request was not carried out.");
  const advice = "it is not known whether the request was carried out.";
  return new Refusal("WORKER_FAILED", `The worker was lost before it replied; ${advice}`);
}

/** The status in metrics if the client left before its reply, as in proxies' logs. */
export const clientHasGone = 499;
