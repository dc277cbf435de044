import type { IncomingMessage } from "node:http";
import { Refusal } from "../../../errors.js";
import { type HostJudge, wrongHost } from "./host-names.js";

/** Refuses requests that a proxy may read differently, which would allow smuggling, and requests for other hosts. */
export function misframed(
  { method, url, rawHeaders, headers, httpVersion, httpVersionMinor }: IncomingMessage,
  isOurHost?: HostJudge,
): Refusal | undefined {
  if (!httpVersion.startsWith("1.")) {
    return new Refusal("INVALID_INPUT", `This server speaks HTTP/1.1, and not HTTP/${httpVersion}.`);
  }
  const hosts = count(rawHeaders, "host");
  if (hosts > 1 || headers.host?.includes(",")) {
    return new Refusal("INVALID_INPUT", "The request has more than one Host header.");
  }
  if (hosts === 0 && httpVersionMinor > 0) return new Refusal("INVALID_INPUT", "The request has no Host header.");
  // Node keeps only the first, but a proxy may have checked another one
  if (count(rawHeaders, "authorization") > 1) {
    return new Refusal("INVALID_INPUT", "The request has more than one Authorization header: send one.");
  }
  if (isOurHost?.(headers.host) === false) return wrongHost(headers.host ?? "");
  // it would reveal the key to a page that makes a browser send it
  if (method === "TRACE") return new Refusal("METHOD_NOT_ALLOWED", "TRACE is not taken here.");
  if (!url?.startsWith("/")) return new Refusal("INVALID_INPUT", "The request's target must be a path.");
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") {
    return new Refusal("UNSUPPORTED_ENCODING", "Send the body without a transfer coding other than chunked.");
  }
  return undefined;
}

function count(rawHeaders: readonly string[], name: string): number {
  let found = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const each = rawHeaders[at] as string;
    if (each.length === name.length && each.toLowerCase() === name) found++;
  }
  return found;
}
