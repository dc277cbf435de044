import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import runpodSdk from "runpod-sdk";
import { expect } from "vitest";
import { call, journal, makeEndpoint, root, until } from "../harness.js";

/** A reply of a server or a client: JSON that the tests check. */
// biome-ignore lint/suspicious/noExplicitAny: tests check its shape
export type Said = any;

/** The facts about a server that every helper here needs. */
export interface Address {
  readonly url: string;
  readonly key: string;
}

/** An endpoint with a handler of `tests/compat/handlers`, run by the stock Python worker. */
export interface Deployment {
  readonly id: string;
  readonly dir: string;
  /** The handler's notes so far, one line each. */
  notes(): string[];
}

const folders: string[] = [];
const interpreters: ChildProcess[] = [];

/** The Python environment with the stock package. */
export function venv(): string {
  const dir = process.env.MILLRACE_TEST_VENV ?? join(root, ".cache/venv");
  if (existsSync(join(dir, "bin/python"))) return dir;
  throw new Error(`There is no Python environment in ${dir}: set MILLRACE_TEST_VENV to one with runpod.`);
}

/** The interpreter of that environment. */
export function python(): string {
  return join(venv(), "bin/python");
}

/** A folder of this test run, removed by `removeFolders`. */
export function newFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), "millrace-compat-"));
  folders.push(dir);
  return dir;
}

/**
 * Ends the interpreters, and removes the folders of `newFolder`. Call it after the server's end, so that no worker
 * loses its directory.
 */
export function removeFolders(): void {
  for (const child of interpreters.splice(0)) child.kill();
  sockets.clear();
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true, force: true });
}

/**
 * A folder with `tests/compat/handlers/{name}.py` as its `handler.py`, and an environment that names the file for its
 * notes.
 */
export function handlerFolder(name: string): { dir: string; env: Record<string, string>; notes(): string[] } {
  const dir = newFolder();
  copyFileSync(join(import.meta.dirname, "handlers", `${name}.py`), join(dir, "handler.py"));
  return { dir, env: { NOTES: join(dir, "notes"), FOLDER: dir }, notes: () => journal(join(dir, "notes")) };
}

/** Deploys a handler with the stock worker's usual start command; by default with at most one CPU worker. */
export async function deploy(
  server: Address,
  name: string,
  settings: Record<string, unknown> = {},
  env: Record<string, string> = {},
): Promise<Deployment> {
  const folder = handlerFolder(name);
  const id = await makeEndpoint(
    server,
    folder.dir,
    { computeType: "CPU", workersMax: 1, ...settings },
    { dockerStartCmd: [python(), "-u", "handler.py"], env: { ...folder.env, ...env } },
  );
  return { id, dir: folder.dir, notes: folder.notes };
}

/** An endpoint without workers: its jobs wait. */
export function waitingEndpoint(server: Address): Promise<string> {
  return makeEndpoint(server, newFolder(), { computeType: "CPU", workersMax: 0 }, { dockerStartCmd: ["true"] });
}

/** The stock JavaScript client of one endpoint, set to the server. */
export function jsClient(server: Address, endpoint: string, key = server.key) {
  const made = runpodSdk(key, { baseUrl: `${server.url}/sdk/v2` }).endpoint(endpoint);
  if (made === null) throw new Error("the client gave no endpoint");
  return made;
}

/** Submits a job over `/run`; resolves with its id. */
export async function submit(
  server: Address,
  endpoint: string,
  input: Record<string, unknown>,
  more: Record<string, unknown> = {},
): Promise<string> {
  const reply = await call(server, "POST", `/v2/${endpoint}/run`, { input, ...more });
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body.id;
}

/** The job's present `/status` reply. */
export async function statusOf(server: Address, endpoint: string, job: string): Promise<Said> {
  const reply = await call(server, "GET", `/v2/${endpoint}/status/${job}`);
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  return reply.body;
}

/** Whether a status can no longer change. */
export function isFinal(status: string): boolean {
  return ["COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"].includes(status);
}

/** Waits until the job is in this state. */
export async function reached(server: Address, endpoint: string, job: string, state: string, withinMs = 30_000) {
  let last: Said;
  const probe = async () => {
    last = await statusOf(server, endpoint, job);
    return last.status === state && last;
  };
  return until<Said>(probe, withinMs).catch(() => {
    throw new Error(`${state} was not reached within ${withinMs} ms: ${JSON.stringify(last)}`);
  });
}

/** Waits until the job is final; resolves with its `/status` reply. */
export async function settled(server: Address, endpoint: string, job: string, withinMs = 45_000): Promise<Said> {
  let last: Said;
  const probe = async () => {
    last = await statusOf(server, endpoint, job);
    return isFinal(last.status) && last;
  };
  return until<Said>(probe, withinMs).catch(() => {
    throw new Error(`not final within ${withinMs} ms: ${JSON.stringify(last)}`);
  });
}

/** Submits a job and waits for its end. */
export async function ran(server: Address, endpoint: string, input: Record<string, unknown>, withinMs = 45_000) {
  return settled(server, endpoint, await submit(server, endpoint, input), withinMs);
}

/** Every chunk of a job, in the order of delivery, until the envelope says that no more can come. */
export async function chunks(server: Address, endpoint: string, job: string, withinMs = 45_000): Promise<Said[]> {
  const found: Said[] = [];
  await until(async () => {
    const reply = await call(server, "GET", `/sdk/v2/${endpoint}/stream/${job}`);
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    found.push(...reply.body.stream);
    return isFinal(reply.body.status);
  }, withinMs);
  return found;
}

/** Whether a process runs. A zombie does not count. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !["Z", "X"].includes(stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3));
  } catch {
    return !existsSync("/proc/self/stat");
  }
}

/** The sockets of interpreters that have imported a stock client, by the client's name and its server. */
const sockets = new Map<string, Promise<string>>();

/**
 * Importing a client takes a second of processor time, so scripts are forked from an interpreter that has imported it.
 */
function interpreter(server: Address, client: string): Promise<string> {
  const name = `${client} ${server.url}`;
  const found = sockets.get(name) ?? startInterpreter(server, client);
  sockets.set(name, found);
  return found;
}

async function startInterpreter(server: Address, client: string): Promise<string> {
  const home = newFolder();
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    CLIENT_KEY: server.key,
    RUNPOD_ENDPOINT_BASE_URL: `${server.url}/sdk/v2`,
    RUNPOD_API_BASE_URL: `${server.url}/sdk`,
  };
  const socket = join(home, "socket");
  const program = join(import.meta.dirname, "scripts/forking.py");
  const child = spawn(python(), [program, socket, client], { env, stdio: ["ignore", "pipe", "inherit"] });
  interpreters.push(child);
  const [said] = await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
  expect(`${said}`).toBe("ready\n");
  return socket;
}

/** The client that each script uses. */
const clientOf = (script: string) => (script === "openai_client" ? "openai" : "runpod");

/**
 * Runs `tests/compat/scripts/{name}.py` in its own process with the stock client set to the server, and resolves with
 * the JSON of the last line that it prints.
 */
export async function script(server: Address, name: string, ...words: string[]): Promise<Said> {
  const connection = connect(await interpreter(server, clientOf(name)));
  connection.setTimeout(60_000, () => connection.destroy(new Error(`${name} ${words[0]} printed nothing`)));
  connection.write(`${JSON.stringify([join(import.meta.dirname, "scripts", `${name}.py`), ...words])}\n`);
  const said = (await text(connection)).trim();
  try {
    return JSON.parse(said.split("\n").at(-1) ?? "");
  } catch {
    throw new Error(`${name} ${words[0]} failed:\n${said}`);
  }
}
