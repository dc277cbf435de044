import { join } from "node:path";
import OpenAI from "openai";
import { makeEndpoint, root } from "../harness.js";
import { type Address, python } from "./stock.js";

export const model = "tiny-miller";

/** An endpoint with the worker of `examples/openai`, kept warm by default; `env` sets its output format. */
export function speakingEndpoint(
  server: Address,
  env: Record<string, string> = {},
  settings: Record<string, unknown> = { workersMin: 1 },
): Promise<string> {
  return makeEndpoint(
    server,
    join(root, "examples/openai"),
    { computeType: "CPU", workersMax: 1, idleTimeout: 120, ...settings },
    {
      dockerStartCmd: [python(), "-u", "handler.py"],
      env: { TOKEN_SECONDS: "0.001", PYTHONDONTWRITEBYTECODE: "1", ...env },
    },
  );
}

/** The base URL for OpenAI's clients. */
export const baseUrl = (server: Address, endpoint: string, prefix = ""): string =>
  `${server.url}${prefix}/v2/${endpoint}/openai/v1`;

/** OpenAI's own JavaScript client, given only the address and the key. */
export function openAiClient(server: Address, endpoint: string, more: Record<string, unknown> = {}): OpenAI {
  return new OpenAI({ baseURL: baseUrl(server, endpoint), apiKey: server.key, maxRetries: 0, ...more });
}
