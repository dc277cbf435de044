import type { IncomingHttpHeaders } from "node:http";
import type { Needs } from "../../operations/needs.js";

/** The `traceparent` of a request, if jobs are traced here. */
export function traceparentFor(
  { isTraced }: Needs<"isTraced">,
  { headers }: { headers: IncomingHttpHeaders },
): string | undefined {
  const header = isTraced ? headers.traceparent : undefined;
  return typeof header === "string" ? header : undefined;
}
