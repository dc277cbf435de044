import type { IncomingMessage } from "node:http";
import { Refusal } from "../errors.js";
import { type HostJudge, wrongHost } from "./host-names.js";

/** Refuses what proxies and servers may read differently, which smuggles requests past a proxy, and what is not for us. */
export function misframed(
  { url, rawHeaders, headers, httpVersionMinor }: IncomingMessage,
  isOurHost?: HostJudge,
): Refusal | undefined {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  if (hosts > 1 || headers.host?.includes(",")) {
    return new Refusal("INVALID_INPUT", "The request has more than one Host header.");
  }
  if (hosts === 0 && httpVersionMinor > 0) return new Refusal("INVALID_INPUT", "The request has no Host header.");
  if (isOurHost?.(headers.host) === false) return wrongHost(headers.host ?? "");
  if (!url?.startsWith("/")) return new Refusal("INVALID_INPUT", "The request's target must be a path.");
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") {
    return new Refusal("UNSUPPORTED_ENCODING", "Send the body without a transfer coding other than chunked.");
  }
  return undefined;
}
