import { connect } from "node:net";
import { join } from "node:path";
import { type Ending, endWith, makeFolder } from "../e2e/handlers.js";
import { journal, makeEndpoint, root } from "../harness.js";

export interface Target {
  readonly url: string;
  readonly port: number;
  readonly key: string;
}

/** A load-balancing endpoint whose workers run the echo server. */
export interface Balanced {
  readonly id: string;
  readonly base: string;
  readonly folder: string;
  /** The notes that the workers have written. */
  notes(): Record<string, unknown>[];
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

export async function makeBalanced(
  test: Ending,
  server: Target,
  settings: Record<string, unknown> = {},
  env: Record<string, string> = {},
): Promise<Balanced> {
  const folder = makeFolder(test);
  const file = join(folder, "notes.jsonl");
  const id = await makeEndpoint(
    server,
    folder,
    { type: "LB", workersMax: 1, idleTimeout: 60, scalerType: "REQUEST_COUNT", scalerValue: 1_000, ...settings },
    { dockerStartCmd: ["node", join(root, "tests/lb/echo.mjs")], env: { ECHO_FILE: file, ...env } },
  );
  endWith(test, server, id);
  const base = `${server.url}/lb/${id}`;
  return {
    id,
    base,
    folder,
    notes: () => journal(file).map((line) => JSON.parse(line)),
    fetch: (path, init = {}) => {
      const headers = new Headers(init.headers);
      if (!headers.has("authorization")) headers.set("authorization", `Bearer ${server.key}`);
      return fetch(base + path, { redirect: "manual", ...init, headers });
    },
  };
}

/** Writes bytes to the server and resolves with everything it sends until it closes, or until `isEnough`. */
export function exchange(
  port: number,
  bytes: string,
  isEnough: (text: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => void socket.write(bytes, "latin1"));
    let text = "";
    socket.setEncoding("latin1").on("data", (part) => {
      text += part;
      if (isEnough(text)) socket.destroy();
    });
    socket.on("error", reject).on("close", () => resolve(text));
    socket.setTimeout(20_000, () => socket.destroy(new Error(`nothing more came after: ${text}`)));
  });
}
