import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { limits } from "../packages/server/src/limits/index.js";
import { freePort as freeWorkerPort } from "../packages/server/src/loops/workers/free-port.js";

/** The repository's root, with a trailing slash left out. */
export const root = join(import.meta.dirname, "..");

/** A real server process with its own data directory; `key` is its bootstrap admin key. */
export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly key: string;
  readonly dataDir: string;
  readonly pid: number;
  /** Everything that the process has printed so far, stdout and stderr together. */
  log(): string;
  /** Sends SIGTERM and resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** kill -9, and waits for the exit. */
  kill(): Promise<void>;
  /** Starts the server again over the same directory and port. */
  restart(): Promise<void>;
  /** Stops the process and removes the directory. */
  end(): Promise<void>;
}

/** A port without a listener that no outgoing connection takes before the server listens. */
export const freePort = (): Promise<number> => freeWorkerPort(new Set());

/** A machine that is busy with other tests may be slow. */
const readyWithinMs = 45_000;

let databases = 0;

/** Settings that give a server its own database if the tests run on PostgreSQL; otherwise it uses its SQLite. */
async function ownDatabase(): Promise<Record<string, string>> {
  const admin = process.env.MILLRACE_TEST_POSTGRES;
  if (admin === undefined) return {};
  databases++;
  const name = `server_${process.pid}_${databases}`;
  const client = new pg.Client(admin);
  await client.connect();
  await client.query(`CREATE DATABASE ${name} TEMPLATE template0`);
  await client.end();
  return { MILLRACE_DATABASE_URL: admin.replace(/[^/]*$/, name) };
}

/** The variables that scripts/node.sh sets for every server. */
const malloc = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("MALLOC_")));

/** Limits that a test's server has instead of its own, because the test would wait for them. */
export type ShorterLimits = { readonly [Name in keyof typeof limits]?: number };

const mainFile = join(root, "packages/server/dist/main.js");
const serviceFile = join(root, "packages/server/dist/assembly/service.js");

/** Starts the built server (`packages/server/dist/main.js`) as users do, and waits until `/readyz` is 200. */
export async function startServer(env: Record<string, string> = {}, shorter?: ShorterLimits): Promise<TestServer> {
  // a bundle has limits of its own, which no other module can change
  const started = shorter ? [`--import=${join(root, "tests/shorter-limits.mjs")}`, serviceFile] : [mainFile];
  const dataDir = env.MILLRACE_DATA_DIR ?? mkdtempSync(join(tmpdir(), "millrace-test-"));
  const port = Number(env.MILLRACE_PORT ?? (await freePort()));
  const key = env.MILLRACE_API_KEY ?? "mr_test_0123456789abcdef0123456789abcdef";
  const url = `http://127.0.0.1:${port}`;
  const database = env.MILLRACE_DATABASE_URL === undefined ? await ownDatabase() : {};
  let output = "";
  let child: ChildProcess;
  let exited: Promise<number | null>;

  async function launch() {
    child = spawn(process.execPath, started, {
      cwd: root,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: process.env.HOME ?? "",
        ...malloc,
        MILLRACE_DATA_DIR: dataDir,
        MILLRACE_PORT: String(port),
        MILLRACE_API_KEY: key,
        MILLRACE_DEMO: "off",
        ...database,
        ...(shorter ? { MILLRACE_TEST_LIMITS: JSON.stringify(shorter) } : {}),
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout?.on("data", (text) => (output += text));
    child.stderr?.on("data", (text) => (output += text));
    exited = new Promise((done) => child.once("exit", (code) => done(code)));
    const deadline = Date.now() + readyWithinMs;
    for (;;) {
      const end = child.exitCode ?? child.signalCode;
      if (end !== null) throw new Error(`the server ended with ${end}:\n${output}`);
      const ready = await fetch(`${url}/readyz`).catch(() => undefined);
      await ready?.arrayBuffer();
      if (ready?.status === 200) return;
      if (Date.now() > deadline) {
        child.kill("SIGKILL");
        throw new Error(`the server is not ready after ${readyWithinMs / 1_000} s:\n${output}`);
      }
      await new Promise((done) => setTimeout(done, 25));
    }
  }

  await launch();
  return {
    url,
    port,
    key,
    dataDir,
    get pid() {
      return child.pid as number;
    },
    log: () => output,
    async stop(signal = "SIGTERM") {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return exited;
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    restart: launch,
    async end() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
      await exited;
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

/** A JSON call with the server's key: status, headers and parsed body (undefined when empty). */
export async function call(
  server: { url: string; key: string },
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  // biome-ignore lint/suspicious/noExplicitAny: tests check its shape
): Promise<{ status: number; headers: Headers; body: any }> {
  const reply = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${server.key}`, ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await reply.text();
  return { status: reply.status, headers: reply.headers, body: text === "" ? undefined : JSON.parse(text) };
}

/** Makes a template with a handler directory and an endpoint with it; resolves with the endpoint's id. */
export async function makeEndpoint(
  server: { url: string; key: string },
  image: string,
  settings: Record<string, unknown> = {},
  template: Record<string, unknown> = {},
): Promise<string> {
  const name = `t-${Math.random().toString(36).slice(2)}`;
  const made = await call(server, "POST", "/v1/templates", { name, imageName: image, isServerless: true, ...template });
  if (made.status !== 200) throw new Error(`template: ${made.status} ${JSON.stringify(made.body)}`);
  const endpoint = await call(server, "POST", "/v1/endpoints", { name, templateId: made.body.id, ...settings });
  if (endpoint.status !== 200) throw new Error(`endpoint: ${endpoint.status} ${JSON.stringify(endpoint.body)}`);
  return endpoint.body.id;
}

/** Calls `probe` every 50 ms until it returns a truthy value; fails after `withinMs`. */
export async function until<T>(
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 20_000,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${probe}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** The lines of a file that tests' handlers append to: the real runs. */
export function journal(path: string): string[] {
  try {
    return readFileSync(path, "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
}
