import { request } from "undici";
import type { LogLine } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { LogQuery } from "../../provider.js";

/** A server of ours that is asked for logs which it keeps. */
export interface LogKeeper {
  readonly host: string;
  readonly port: number;
  /** The header that lets one request for a worker's log in. */
  readonly mark: (workerId: string, path: string) => Readonly<Record<string, string>>;
}

/** The path of a worker's log between servers. */
export function logPath(workerId: string, query: Omit<LogQuery, "signal">): string {
  const { tail, sinceUs, untilUs, jobId, follow, search } = query;
  const asked = new URLSearchParams();
  const wanted = { tail, sinceUs, untilUs, jobId, follow: follow || undefined, bytes: search?.bytesLeft };
  for (const [name, value] of Object.entries(wanted)) if (value !== undefined) asked.set(name, `${value}`);
  return `/servers/logs/${encodeURIComponent(workerId)}${asked.size > 0 ? `?${asked}` : ""}`;
}

/**
 * A worker's lines as the server that keeps them reads them, with its bounds and its order. Rejects if that server does
 * not answer, or hangs up before the end.
 */
export async function* logsFrom(
  keeper: LogKeeper,
  workerId: string,
  query: LogQuery,
): AsyncGenerator<readonly LogLine[]> {
  const path = logPath(workerId, query);
  const { host, port, mark } = keeper;
  const { statusCode, body } = await request(`http://${host.includes(":") ? `[${host}]` : host}:${port}${path}`, {
    // the mark stands for the check of a name; an address of this form passes everywhere
    headers: { host: "127.0.0.1", ...mark(workerId, path) },
    headersTimeout: limits.logElsewhereBeginMs,
    bodyTimeout: limits.logElsewhereMs,
    signal: query.signal,
  }).catch((error: unknown) => {
    throw query.signal.aborted ? error : new Error("the server that keeps it does not answer", { cause: error });
  });
  if (statusCode !== 200) {
    await body.dump();
    throw new Error(`the server that keeps it answers with status ${statusCode}`);
  }
  let rest = "";
  let isWhole = false;
  body.setEncoding("utf8");
  for await (const text of body as AsyncIterable<string>) {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > limits.logElsewhereCharsMax) throw new Error("the server that keeps it sends too long a line");
    const lines: LogLine[] = [];
    for (const part of parts) {
      if (part === "") continue; // still here
      const said = JSON.parse(part) as LogLine | { readonly bytesLeft: number };
      if ("text" in said) lines.push(said);
      else {
        isWhole = true;
        if (query.search) query.search.bytesLeft = Math.min(query.search.bytesLeft, said.bytesLeft);
      }
    }
    if (lines.length > 0) yield lines;
  }
  if (!isWhole) throw new Error("the server that keeps it has hung up");
}
