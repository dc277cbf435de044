import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestServer } from "../harness.js";
import { clients } from "./npm-clients.js";

export interface Said {
  readonly isError: boolean;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: each tool has its own reply
  readonly json: any;
}

/** The stock MCP server as a child that speaks over its standard input and output. */
export interface Mcp {
  readonly tools: readonly string[];
  call(tool: string, args?: object): Promise<Said>;
  end(): void;
}

/** Starts a stock MCP server, unchanged, for a server of ours; version 3 speaks REST v1 if `env` says so. */
export async function startMcp(server: TestServer, version: 3 | 4 = 4, env: Record<string, string> = {}): Promise<Mcp> {
  const name = version === 4 ? "@runpod/mcp-server" : "mcp-server-3";
  const program = join(clients, "node_modules", name, "dist/stdio.mjs");
  if (!existsSync(program)) throw new Error(`There is no ${program}: run this file with npm test.`);
  const child = spawn(process.execPath, [program], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: server.dataDir,
      RUNPOD_API_KEY: server.key,
      RUNPOD_API_BASE_URL: server.url,
      RUNPOD_SERVERLESS_API_URL: `${server.url}/sdk/v2`,
      RUNPOD_PUBLIC_GRAPHQL_URL: `${server.url}/sdk/graphql`,
      RUNPOD_AUTHED_GRAPHQL_URL: `${server.url}/sdk/graphql`,
      ...env,
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const waiting = new Map<number, (message: Message) => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line) as Message;
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let sent = 0;
  const ask = (method: string, params: object) =>
    new Promise<Message>((resolve) => {
      const id = ++sent;
      waiting.set(id, resolve);
      send({ id, method, params });
    });
  const clientInfo = { name: "test", version: "1" };
  await ask("initialize", { protocolVersion: "2024-11-05", capabilities: {}, clientInfo });
  send({ method: "notifications/initialized" });
  const { result } = await ask("tools/list", {});
  return {
    tools: (result?.tools ?? []).map(({ name }) => name),
    async call(tool, args = {}) {
      const { result, error } = await ask("tools/call", { name: tool, arguments: args });
      const text = result?.content?.[0]?.text ?? JSON.stringify(error);
      return { isError: result?.isError === true || error !== undefined, text, json: jsonIn(text) };
    },
    end: () => void child.kill(),
  };
}

interface Message {
  readonly id: number;
  readonly result?: {
    readonly tools?: readonly { readonly name: string }[];
    readonly content?: readonly { readonly text: string }[];
    readonly isError?: boolean;
  };
  readonly error?: unknown;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
