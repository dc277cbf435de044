import { setTimeout as sleep } from "node:timers/promises";
import { ApiError, createClient } from "@millrace/api/client";
import { parseExactly } from "./exact-json.js";
import { exits, Failure } from "./exit.js";
import type { Found } from "./server.js";

/** Calls of one server, whose failures end the command in words. */
export type Calls = ReturnType<typeof openCalls>;

export function openCalls({ url, key, from }: Found, onIgnored: (fields: string) => void = () => {}) {
  const client = createClient({ url, key, parse: parseExactly, onIgnored });
  return {
    url,
    /** How a command line to paste gives the key. */
    pastedKey: from.startsWith("/") ? `$(cat ${from})` : "$MILLRACE_API_KEY",
    /** A reply whose body is read as it comes. */
    async open(path: string): Promise<Response> {
      try {
        return await client.open(path);
      } catch (error) {
        throw worded(error, url, from);
      }
    },
    async call<T>(
      method: string,
      path: string,
      body?: unknown,
      headers?: Readonly<Record<string, string>>,
    ): Promise<T> {
      for (const until = performance.now() + startPatienceMs; ; ) {
        try {
          return await client.call<T>(method, path, body, headers);
        } catch (error) {
          if (!isStarting(error) || performance.now() > until) throw worded(error, url, from);
          await sleep(startLookMs);
        }
      }
    },
  };
}

/** How long a server that is just starting is waited for. */
const startPatienceMs = 15_000;
const startLookMs = 200;

const isStarting = (error: unknown): boolean =>
  error instanceof ApiError && error.code === "UNAVAILABLE" && error.message.startsWith("The service is starting");

/** What helps whatever the command was; undefined where that depends on it. */
function hintFor({ status }: ApiError, from: string): string | undefined {
  if (status === 401) return `The key is from ${from}. Others: millrace context list`;
  if (status === 429) return "Try again in a moment.";
  return status >= 500 ? "Try again in a moment, or look for the cause: millrace doctor" : undefined;
}

function worded(error: unknown, url: string, from: string): unknown {
  if (error instanceof ApiError) {
    const isForNow = error.status === 429 || error.status === 503;
    return new Failure(exits.refused, error.message, hintFor(error, from), isForNow, error.status);
  }
  if (error instanceof SyntaxError)
    return new Failure(exits.unreachable, `${url} answers, but is no Millrace server.`, "millrace context list");
  if (error instanceof TypeError) {
    const cause = (error.cause as NodeJS.ErrnoException | undefined)?.code ?? error.message;
    return new Failure(exits.unreachable, `No server answers at ${url} (${cause}).`, "npm start, in Millrace's folder");
  }
  return error;
}
