import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandOf } from "../faults/machine/processes.js";
import { call, freePort, root, startServer, type TestServer, until } from "../harness.js";
import type { Ending } from "./handlers.js";
import { type Body, healthOf } from "./wire.js";

/** A server for one test, which ends with it. */
async function startOwn(test: Ending, env: Record<string, string> = {}): Promise<TestServer> {
  const server = await startServer(env);
  test.onTestFinished(() => server.end());
  return server;
}

/** A server process with exactly this environment, whether or not it becomes ready. */
interface Process {
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;
  log(): string;
}

function launch(test: Ending, env: Record<string, string>): Process {
  const child = spawn(process.execPath, [join(root, "packages/server/dist/main.js")], {
    cwd: root,
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (text) => (output += text));
  child.stderr.on("data", (text) => (output += text));
  const exit = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
  test.onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await exit;
  });
  return { child, exit, log: () => output };
}

/** Waits until the server at this port is ready. */
async function ready(port: number): Promise<void> {
  await until(async () => {
    const reply = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    await reply?.arrayBuffer();
    return reply?.status === 200;
  });
}

/** Expects a start to fail with exit code 1 or 2 and a sentence that matches, without a stack trace. */
async function expectNoStart(test: Ending, env: Record<string, string>, ...words: RegExp[]): Promise<string> {
  const { exit, log } = launch(test, env);
  expect([1, 2]).toContain(await exit);
  for (const word of words) expect(log()).toMatch(word);
  expect(log()).not.toMatch(/^\s+at .+:\d+/m);
  expect(log()).not.toMatch(/node:internal/);
  return log();
}

/** A data directory that is removed after the servers on it, because they were launched later. */
function makeDataDir(test: Ending): string {
  const folder = mkdtempSync(join(tmpdir(), "millrace-e2e-data-"));
  test.onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  return folder;
}

describe.concurrent("a start", () => {
  it("on a port in use fails with one sentence", async (test) => {
    const dataDir = makeDataDir(test);
    const holder = createServer();
    const port = await freePort();
    await new Promise<void>((done) => holder.listen(port, "127.0.0.1", done));
    test.onTestFinished(() => void holder.close());
    const env = { MILLRACE_DATA_DIR: dataDir, MILLRACE_PORT: String(port), MILLRACE_DEMO: "off" };
    await expectNoStart(test, env, new RegExp(`\\b${port}\\b`), /in use|taken/i);
  });

  it("on a data directory in use fails with one sentence, and leaves its server alone", async (test) => {
    const server = await startOwn(test);
    const env = { MILLRACE_DATA_DIR: server.dataDir, MILLRACE_PORT: String(await freePort()), MILLRACE_DEMO: "off" };
    await expectNoStart(test, env, /in use|already|another/i);
    expect((await call(server, "GET", "/v1/endpoints")).status).toBe(200);
  });

  it("with invalid settings reports all of them at once", async (test) => {
    const wrong = {
      MILLRACE_PORT: "eighty",
      MILLRACE_RATE_LIMITS: "maybe",
      MILLRACE_REQUESTS_PER_WORKER: "-1",
      MILLRACE_WORKER_URL: "not a url",
    };
    const env = { MILLRACE_DATA_DIR: makeDataDir(test), MILLRACE_DEMO: "off", ...wrong };
    await expectNoStart(test, env, ...Object.keys(wrong).map((name) => new RegExp(name)));
  });

  it("in an empty folder makes a key, names its file, and runs a demo job", async (test) => {
    const dataDir = makeDataDir(test);
    const port = await freePort();
    const env = { MILLRACE_DATA_DIR: dataDir, MILLRACE_PORT: String(port) };
    const first = launch(test, env);
    await ready(port);
    const url = `http://127.0.0.1:${port}`;
    const file = join(dataDir, "api-key");
    const key = readFileSync(file, "utf8").trim();
    await until(() => first.log().includes(file), 10_000);
    for (const line of first.log().trim().split("\n")) expect(JSON.parse(line), line).toHaveProperty("event");
    expect(first.log()).not.toContain(key); // logs have more readers than operators
    const target = { url, key };
    const endpoints = (await call(target, "GET", "/v1/endpoints")).body;
    expect(endpoints).toHaveLength(1);
    const demo = endpoints[0].id;
    await until(async () => (await healthOf(target, demo)).jobs.completed > 0, 30_000);
    const [done]: Body[] = (await call(target, "GET", `/v2/${demo}/requests?status=COMPLETED`)).body.requests;
    expect(done).toMatchObject({ status: "COMPLETED", output: expect.anything() });
    const commands = readdirSync("/proc").map((name) => commandOf(Number(name)));
    expect(commands.filter((line) => line.includes("keeper.bundled.js ") && line.includes(dataDir))).toHaveLength(1);
    for (const name of readdirSync(dataDir)) {
      const found = statSync(join(dataDir, name));
      if (found.isFile() || found.isDirectory()) expect(found.mode & 0o077, `${name} is its owner's only`).toBe(0);
    }
    first.child.kill("SIGTERM");
    expect(await first.exit).toBe(0);

    const second = launch(test, env);
    await ready(port);
    expect((await call(target, "GET", "/v1/endpoints")).body).toHaveLength(1);
    expect(second.log()).not.toContain(key);
    second.child.kill("SIGTERM");
    expect(await second.exit).toBe(0);

    const third = launch(test, { ...env, MILLRACE_API_KEY: "mr_given_later_0123456789abcdef012345" });
    await ready(port);
    expect((await call(target, "GET", "/v1/endpoints")).status).toBe(401);
    const given = { url, key: "mr_given_later_0123456789abcdef012345" };
    expect((await call(given, "GET", "/v1/endpoints")).body).toHaveLength(1);
    expect(third.log()).not.toContain(given.key);
  });
});

it("A Node.js that is too old is told which one is needed", async (test) => {
  const older = "Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.19.0'}})";
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${older}` };
  await expectNoStart(test, env, /^Millrace needs Node\.js 22\.19 or newer; this is 20\.19\.0\./);
  // 20 would otherwise fail while it links this file: `node:module` has fewer names there
  const main = readFileSync(join(root, "packages/server/dist/main.js"), "utf8");
  expect(main).not.toMatch(/import \{[^}]*\} from "node:module"/);

  const program = join(root, "packages/cli/dist/main.js");
  const command = spawnSync(process.execPath, [program, "doctor"], {
    env: { ...process.env, ...env },
    encoding: "utf8",
  });
  expect(command).toMatchObject({ status: 1, stderr: "millrace needs Node.js 22.19 or newer; this is 20.19.0.\n" });
  expect(readFileSync(program, "utf8")).not.toMatch(/^import .*"\.\.?\//m); // our own files are linked only afterwards
});
