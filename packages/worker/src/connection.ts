import http from "node:http";
import type https from "node:https";
import { limits } from "./limits.js";

/** The result of a call. `status` 0 means that there was no reply; `text` then says why. */
export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number;
}

interface CallOptions {
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** How long the other side may be silent before the call counts as unanswered. */
  readonly silenceMaxMs?: number;
}

/**
 * The worker's connections to its server, kept alive between calls.
 * Built on `node:http`: the global `fetch` takes about 20 ms longer to its first call, on every cold start.
 */
export class Connection {
  readonly #apiKey: string;
  readonly #agents = new Map<string, http.Agent>();

  constructor(apiKey: string) {
    this.#apiKey = apiKey;
  }

  /** Makes one call. Never rejects: a call without a reply resolves with status 0. */
  call(method: "GET" | "POST", url: string, options: CallOptions = {}): Promise<Reply> {
    return new Promise((resolve) => {
      const fail = (error: Error & { code?: string }) => resolve(unanswered(error.code ?? error.message));
      try {
        const request = this.#open(method, url, options);
        request.on("error", fail);
        request.on("response", (response) => readReply(response, resolve, fail));
        request.setTimeout(options.silenceMaxMs ?? limits.postSilenceMaxMs, () =>
          request.destroy(new Error("the server was silent for too long")),
        );
        request.end(options.body);
      } catch (error) {
        fail(error as Error);
      }
    });
  }

  /** Closes open connections. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #open(method: string, url: string, { body, signal }: CallOptions): http.ClientRequest {
    const { protocol } = new URL(url);
    const client = protocol === "https:" ? tlsClient() : http;
    const agent = this.#agents.get(protocol) ?? new client.Agent({ keepAlive: true });
    this.#agents.set(protocol, agent);
    const headers: http.OutgoingHttpHeaders = { authorization: this.#apiKey };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = Buffer.byteLength(body);
    }
    return client.request(url, { method, headers, agent, ...(signal && { signal }) });
  }
}

/** True if the failure may be temporary, so that the call is worth repeating. */
export function isPassing({ status }: Reply): boolean {
  return status === 0 || status >= 500 || status === 429 || status === 408;
}

/** Loaded only if the server is behind TLS: most workers start without it. */
function tlsClient(): typeof https {
  return process.getBuiltinModule("node:https");
}

function readReply(
  response: http.IncomingMessage,
  resolve: (reply: Reply) => void,
  fail: (error: Error & { code?: string }) => void,
): void {
  const parts: Buffer[] = [];
  response.on("data", (part: Buffer) => parts.push(part));
  response.on("error", fail);
  response.on("end", () =>
    resolve({
      status: response.statusCode ?? 0,
      text: Buffer.concat(parts).toString("utf8"),
      retryAfterMs: retryAfterMs(response.headers["retry-after"]),
    }),
  );
}

function retryAfterMs(header: string | undefined): number {
  const seconds = Number(header);
  return header && seconds > 0 ? Math.min(seconds * 1_000, limits.retryAfterMaxMs) : 0;
}

function unanswered(text: string): Reply {
  return { status: 0, text, retryAfterMs: 0 };
}
