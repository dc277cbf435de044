import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { exits, Failure } from "../exit.js";
import type { Streams } from "../terminal.js";

/** A server of this command's own. */
export interface Engine {
  readonly url: string;
  readonly key: string;
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number | null>;
  /** Stops it in order: workers get their grace, jobs stay in its data directory. */
  stop(): Promise<void>;
}

export interface EngineOptions {
  readonly dataDir: string;
  /** A port, or undefined for the first free one from 8000 on. */
  readonly port: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isJson: boolean;
  /** Where its lines go. */
  readonly out: Streams["out"];
}

const portFrom = 8_000;
const portsTried = 100;
const lookMs = 25;

/** Starts the engine that `npm start` runs, on a data directory of its own. */
export async function startEngine({ dataDir, port, env, isJson, out }: EngineOptions): Promise<Engine> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(dataDir, ".gitignore"), "*\n");
  const program = createRequire(import.meta.url).resolve("@millrace/server/main");
  const chosen = port ?? (await freePort());
  const child = spawn(process.execPath, [program], {
    env: {
      ...env,
      MILLRACE_URL: undefined,
      MILLRACE_API_KEY: undefined,
      MILLRACE_CONFIG_DIR: undefined,
      MILLRACE_CLONE: undefined,
      MILLRACE_HOST: "127.0.0.1",
      MILLRACE_PORT: String(chosen),
      MILLRACE_DATA_DIR: dataDir,
      MILLRACE_DATABASE_URL: undefined,
      MILLRACE_DEMO: "off",
      MILLRACE_BANNER: "off",
      MILLRACE_LOG_FORMAT: isJson ? "json" : "lines",
      ...(out.isTTY === true && !env.NO_COLOR ? { FORCE_COLOR: env.FORCE_COLOR ?? "1" } : {}),
      COLUMNS: String(out.columns ?? env.COLUMNS ?? ""),
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  // whole lines, so that ours can stand between them
  createInterface(child.stdout).on("line", (line) => void out.write(`${line}\n`));
  let hasEnded = false;
  const ended = new Promise<number | null>((done) => {
    child.once("error", () => done(null));
    child.once("close", done);
  }).finally(() => {
    hasEnded = true;
  });
  const url = `http://127.0.0.1:${chosen}`;
  while (!(await isReady(url))) {
    if (hasEnded) throw new Failure(exits.failed, "The engine could not start: it has said why.");
    await sleep(lookMs);
  }
  return {
    url,
    key: readFileSync(join(dataDir, "api-key"), "utf8").trim(),
    ended,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

async function freePort(): Promise<number> {
  for (let port = portFrom; port < portFrom + portsTried; port++) if (await isFree(port)) return port;
  throw new Failure(exits.failed, `No port from ${portFrom} to ${portFrom + portsTried - 1} is free.`, "--port 9000");
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((done) => {
    probe.once("error", () => done(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => done(true)));
  });
}
