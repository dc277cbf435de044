import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { called, shellWord } from "../called.js";
import { exits, Failure } from "../exit.js";
import { makeFolder } from "../files.js";
import type { Streams } from "../output/terminal.js";
import { devMark } from "../server.js";

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
  readonly isVerbose: boolean;
  /** What it advises when a Python handler lacks a package; `{package}` stands for its name. */
  readonly packageAdvice: string | undefined;
  /** Where its lines go. */
  readonly out: Streams["out"];
  /** Where it complains. */
  readonly err: Streams["err"];
}

const portFrom = 8_000;
const portsTried = 100;
const lookMs = 25;

/** Starts the engine that `npm start` runs, on a data directory of its own. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  assertOwn(options.dataDir);
  makeFolder(options.dataDir);
  writeFileSync(join(options.dataDir, ".gitignore"), "*\n");
  writeFileSync(join(options.dataDir, devMark), "");
  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await freePort());
    const { engine, said } = await startAt(port, options);
    if (engine) return engine;
    if (said.includes("uses the data directory")) throw servedAlready(options);
    // another program may have taken the port meanwhile
    if (options.port !== undefined || tries === triesMost || (await isFree(port)))
      throw new Failure(exits.failed, `The engine could not start: ${said}`);
  }
}

/** An engine that serves, or the last words of one that could not. */
async function startAt(
  port: number,
  { dataDir, env, isJson, isVerbose, packageAdvice, out, err }: EngineOptions,
): Promise<{ engine?: Engine; said: string }> {
  // it is written anew as soon as this engine listens; until then it may be another engine's, or an earlier one's
  const addressFile = join(dataDir, "url");
  const before = markOf(addressFile);
  const child = spawn(process.execPath, [createRequire(import.meta.url).resolve("@millrace/server/main")], {
    env: {
      ...env,
      MILLRACE_URL: undefined,
      MILLRACE_API_KEY: undefined,
      MILLRACE_CONFIG_DIR: undefined,
      MILLRACE_CLONE: undefined,
      MILLRACE_HOST: "127.0.0.1",
      MILLRACE_PORT: String(port),
      MILLRACE_DATA_DIR: dataDir,
      MILLRACE_DATABASE_URL: undefined,
      MILLRACE_DEMO: "off",
      ...(packageAdvice === undefined ? {} : { MILLRACE_PACKAGE_ADVICE: packageAdvice }),
      MILLRACE_STOP_GRACE: env.MILLRACE_STOP_GRACE ?? "2", // whoever saves a file waits for the next worker
      MILLRACE_BANNER: "off",
      // programs are told of each job, too
      ...(isVerbose || isJson ? { MILLRACE_LOG_LEVEL: "debug" } : {}),
      MILLRACE_LOG_FORMAT: isJson ? "json" : "lines",
      ...(out.isTTY === true && !env.NO_COLOR ? { FORCE_COLOR: env.FORCE_COLOR ?? "1" } : {}),
      COLUMNS: String(out.columns ?? env.COLUMNS ?? ""),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  // whole lines, so that ours can stand between them
  createInterface(child.stdout).on("line", (line) => void out.write(`${line}\n`));
  let said = "";
  let serves = false;
  createInterface(child.stderr).on("line", (line) => {
    if (serves) err.write(`${line}\n`);
    else said = `${said}${line}\n`.slice(-lastWordsMost);
  });
  let hasEnded = false;
  const ended = new Promise<number | null>((done) => {
    child.once("error", () => done(null));
    child.once("close", done);
  }).finally(() => {
    hasEnded = true;
  });
  const url = `http://127.0.0.1:${port}`;
  while (markOf(addressFile) === before || !(await isReady(url))) {
    if (hasEnded) return { said: said.trim() };
    await sleep(lookMs);
  }
  serves = true;
  const engine = {
    url,
    key: readFileSync(join(dataDir, "api-key"), "utf8").trim(),
    ended,
    async stop() {
      child.kill("SIGTERM");
      await ended;
      rmSync(addressFile, { force: true }); // nothing answers there any more
    },
  };
  return { engine, said };
}

/** Differs after each writing of a file; undefined if there is none. */
function markOf(file: string): string | undefined {
  const stats = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.ino} ${stats.mtimeNs}`;
}

/** Refuses the data of a server, which would get an endpoint that is not its own, and lose its address. */
function assertOwn(dataDir: string): void {
  if (!existsSync(join(dataDir, "millrace.db")) || existsSync(join(dataDir, devMark))) return;
  throw new Failure(
    exits.usage,
    `${dataDir} has the data of a server that was started in this folder. A handler needs a folder of its own.`,
    "mkdir my-handler, and move the handler there",
  );
}

/** Why an engine cannot start whose folder has one already, and how to speak to that one. */
function servedAlready({ dataDir, env }: EngineOptions): Failure {
  const folder = dirname(dataDir);
  return new Failure(
    exits.failed,
    `A millrace dev already serves ${folder}: send its jobs there, or stop it first.`,
    `cd ${shellWord(folder)} && ${called(env, folder)} run NAME INPUT`,
  );
}

const triesMost = 5;
const lastWordsMost = 4_000;

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
