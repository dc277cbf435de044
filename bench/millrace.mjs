// A Millrace server in its own process and data directory, started as users do.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/set-up.mjs";
import { freePort, makeFolder, reach, start, stop } from "./processes.mjs";

export const key = "mr_bench_0123456789abcdef0123456789abcdef";
const readyMaxMs = 120_000;
/** The variables that scripts/node.sh sets for every server. */
const malloc = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("MALLOC_")));

/** The server refuses to run with these settings; the message is its own sentence. */
export class Refused extends Error {}

/** A server that can be stopped, killed and started again on the same data. */
export class Millrace {
  #child;
  #said = "";
  #env;

  constructor({ dataDir, databaseUrl, port, env = {} }) {
    this.dataDir = dataDir;
    this.databaseUrl = databaseUrl;
    this.url = `http://127.0.0.1:${port}`;
    this.#env = {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ...malloc,
      MILLRACE_DATA_DIR: dataDir,
      MILLRACE_PORT: String(port),
      MILLRACE_API_KEY: key,
      MILLRACE_RATE_LIMITS: "off",
      MILLRACE_DEMO: "off",
      MILLRACE_LOG_LEVEL: "error",
      // If the bench itself is killed, its workers end soon.
      MILLRACE_AWAY_MAX: "60",
      ...(databaseUrl === undefined ? {} : { MILLRACE_DATABASE_URL: databaseUrl }),
      ...env,
    };
  }

  get pid() {
    return this.#child?.pid;
  }

  /** Starts it; resolves with the milliseconds from the spawn until it is ready. */
  async start({ nodeArgs = [], pollMs = 10 } = {}) {
    this.#said = "";
    const beganAt = performance.now();
    const child = start(process.execPath, [...nodeArgs, join(root, "packages/server/dist/main.js")], {
      cwd: root,
      env: this.#env,
    });
    this.#child = child;
    child.stderr.setEncoding("utf8").on("data", (text) => {
      this.#said = `${this.#said}${text}`.slice(-2_000);
    });
    let isClosed = false;
    child.once("close", () => {
      isClosed = true;
    });
    const isReady = async () => {
      if (isClosed) throw new Refused(this.#said.trim() || `The server ended (${child.signalCode ?? child.exitCode}).`);
      const reply = await fetch(`${this.url}/readyz`).catch(() => undefined);
      await reply?.arrayBuffer();
      return reply?.status === 200;
    };
    await reach("a ready server", isReady, { withinMs: readyMaxMs, everyMs: pollMs });
    return performance.now() - beganAt;
  }

  /** Stops it in order, workers first. */
  stop = () => stop(this.#child, "SIGTERM");

  /** Kills it, as a power failure would. */
  kill = () => stop(this.#child, "SIGKILL");

  /** One call with the admin's key; resolves with the parsed answer. */
  async call(method, path, body) {
    const reply = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path} was answered ${reply.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Makes a template with a folder and an endpoint with it; resolves with the endpoint's id. */
  async makeEndpoint(folder, settings, template = {}) {
    const name = `bench-${Math.random().toString(36).slice(2)}`;
    // An endpoint without workers has an empty folder, so its template needs a start command.
    const isEmpty = existsSync(folder) && readdirSync(folder).length === 0;
    const { id: templateId } = await this.call("POST", "/v1/templates", {
      name,
      imageName: folder,
      ...(isEmpty ? { dockerStartCmd: ["true"] } : {}),
      isServerless: true,
      ...template,
    });
    const endpoint = await this.call("POST", "/v1/endpoints", { name, templateId, ...settings });
    return endpoint.id;
  }

  health = (endpoint) => this.call("GET", `/v2/${endpoint}/health`);

  /** Waits until `count` workers of an endpoint have asked for their first job. */
  async workersReady(endpoint, count) {
    const isReady = async () => {
      const { workers } = await this.health(endpoint);
      return workers.ready + workers.idle + workers.running >= count;
    };
    await reach(`${count} ready workers`, isReady);
  }
}

/** Starts a server in its own folder, which ends with its scope. `databaseUrl` is PostgreSQL's; without it, SQLite. */
export async function startMillrace(scope, { databaseUrl, nodeArgs, env } = {}) {
  const server = await makeMillrace(scope, { databaseUrl, env });
  await server.start({ nodeArgs });
  return server;
}

/** The same, but not started yet. */
export async function makeMillrace(scope, { databaseUrl, env } = {}) {
  const dataDir = makeFolder(scope);
  const server = new Millrace({ dataDir, databaseUrl, env, port: await freePort() });
  scope.defer(() => server.pid !== undefined && server.stop());
  return server;
}
