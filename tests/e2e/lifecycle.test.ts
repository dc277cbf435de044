import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, freePort, journal, root, startServer, type TestServer, until } from "../harness.js";
import { type Ending, makeFolder, makeQueue, makeRunning } from "./handlers.js";
import { type HeldJob, isAlive, makeHeld } from "./puppet.js";
import { type Body, healthOf, reach, statusOf, submit } from "./wire.js";

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

/** Clean-up that runs after a whole describe block rather than after a test. */
function endings(): { suite: Ending; end(): Promise<void> } {
  const undos: (() => Promise<void> | void)[] = [];
  const end = async () => {
    for (const undo of undos.splice(0).reverse()) await undo();
  };
  return { suite: { onTestFinished: (undo) => void undos.push(undo) }, end };
}

/** Jobs that real workers have begun, and that end once a file exists. */
interface Work {
  readonly endpoint: string;
  readonly jobs: readonly string[];
  readonly gate: string;
  /** The lines that the jobs have written. */
  readonly ran: string;
}

/** Submits a job for each name, which is also its output, and starts a worker for each. */
async function makeWork(test: Ending, server: TestServer, names: readonly string[]): Promise<Work> {
  const folder = makeFolder(test);
  const [gate, ran] = [join(folder, "gate"), join(folder, "ran")];
  const endpoint = await makeRunning(test, server, { workersMin: names.length, workersMax: names.length });
  const jobs: string[] = [];
  for (const name of names) jobs.push(await submit(server, endpoint, { gate, journal: ran, name, echo: name }));
  await until(() => starts(ran).length === names.length);
  return { endpoint, jobs, gate, ran };
}

const starts = (file: string) => journal(file).filter((line) => line.includes(" start "));
const ends = (file: string) => journal(file).filter((line) => line.includes(" end "));
const pidOf = (line: string | undefined) => Number(line?.split(" ")[2]);

describe.concurrent("SIGTERM", () => {
  it("ends the server with 0, and its workers with it; their jobs run after the next start", async (test) => {
    const folder = makeFolder(test);
    const [gate, ran] = [join(folder, "gate"), join(folder, "ran")];
    const server = await startOwn(test, { MILLRACE_STOP_GRACE: "2" });
    const endpoint = await makeRunning(test, server, { workersMax: 1 });
    const running = await submit(server, endpoint, { gate, journal: ran, name: "a", echo: 1 });
    const waiting = await submit(server, endpoint, { gate, journal: ran, name: "b", echo: 2 });
    await until(() => starts(ran).length === 1);
    const pid = pidOf(starts(ran)[0]);
    expect(isAlive(pid)).toBe(true);
    expect(await server.stop()).toBe(0);
    await until(() => !isAlive(pid), 5_000);
    expect(server.log()).not.toMatch(/^\s+at .+:\d+/m);
    writeFileSync(gate, "");
    await server.restart();
    expect(await reach(server, endpoint, running, "COMPLETED")).toMatchObject({ output: 1, retries: 0 });
    expect((await reach(server, endpoint, waiting, "COMPLETED")).output).toBe(2);
    expect(ends(ran).map((line) => line[0])).toEqual(["a", "b"]);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ completed: 2, failed: 0, retried: 0 });
  });

  it("answers held requests before it ends", async (test) => {
    const server = await startOwn(test);
    const endpoint = await makeQueue(test, server);
    const job = await submit(server, endpoint);
    const wait = "wait=300000"; // unanswered, they would outlast the test
    const held = call(server, "POST", `/v2/${endpoint}/runsync?${wait}`, { input: {} });
    const held2 = call(server, "GET", `/v2/${endpoint}/status-sync/${job}?${wait}`);
    await until(async () => (await healthOf(server, endpoint)).jobs.inQueue === 2);
    expect(await server.stop()).toBe(0);
    for (const reply of await Promise.all([held, held2])) {
      expect([200, 503]).toContain(reply.status);
      if (reply.status === 200) expect(reply.body.status).toBe("IN_QUEUE");
    }
  });
});

describe("a kill -9", () => {
  const { suite, end } = endings();
  let server: TestServer;
  let working: Work;
  let orphaned: Work;
  let held: HeldJob;
  let knocking: HeldJob;
  let saved: Body;
  let queue: string;
  const acknowledged: string[] = [];
  let outlived: boolean[];
  const statuses: number[] = [];

  // One server is killed once, with all of this on it.
  beforeAll(async () => {
    server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
    [working, orphaned, held, knocking] = await Promise.all([
      makeWork(suite, server, ["a", "b"]),
      makeWork(suite, server, ["second"]),
      makeHeld(suite, server),
      makeHeld(suite, server),
    ]);
    await held.worker.ping([held.job]);
    const idle = await makeQueue(suite, server);
    saved = (await call(server, "PATCH", `/v1/endpoints/${idle}`, { idleTimeout: 77 })).body;
    queue = await makeQueue(suite, server);
    let isOver = false;
    const clients = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const job = await submit(server, queue, { n: acknowledged.length }).catch(() => undefined);
        if (job === undefined) return;
        acknowledged.push(job);
      }
    });
    await until(() => acknowledged.length > 200);
    await server.kill();
    isOver = true;
    await Promise.all(clients);
    outlived = starts(working.ran).map((line) => isAlive(pidOf(line)));
    writeFileSync(working.gate, ""); // they end while no server is listening
    await until(() => ends(working.ran).length === 2);
    process.kill(pidOf(starts(orphaned.ran)[0]), "SIGKILL");
    writeFileSync(orphaned.gate, "");
    const knocked = until(async () => {
      const status = await knocking.worker.done(knocking.job, { output: 1 }).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status !== 0) statuses.push(status);
      return status === 200;
    });
    await Promise.all([server.restart(), knocked]);
  });
  afterAll(async () => {
    await end();
    await server?.end();
  });

  it("leaves workers running, and their results are accepted once after the restart", async () => {
    expect(outlived).toEqual([true, true]);
    const { endpoint, jobs, ran } = working;
    for (const [n, job] of jobs.entries()) {
      const body = await reach(server, endpoint, job, "COMPLETED");
      expect(body).toMatchObject({ output: ["a", "b"][n], retries: 0 });
    }
    expect(starts(ran)).toHaveLength(2);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({
      completed: 2,
      inQueue: 0,
      inProgress: 0,
      retried: 0,
    });
    const next = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: { echo: "next" } });
    expect(next.body.output).toBe("next");
  });

  it("does not change a worker's secret, nor the jobs it holds", async () => {
    const { endpoint, worker, job } = held;
    expect(await held.status()).toMatchObject({ status: "IN_PROGRESS", workerId: worker.id });
    expect((await worker.ping([job])).status).toBe(200);
    expect((await worker.done(job, { output: "after" })).status).toBe(200);
    expect(await held.status()).toMatchObject({ status: "COMPLETED", output: "after", retries: 0 });
    const next = await submit(server, endpoint);
    expect((await worker.take()).body.id).toBe(next);
  });

  it("gives back the jobs of workers that died meanwhile", async () => {
    const { endpoint, jobs, ran } = orphaned;
    expect(await reach(server, endpoint, jobs[0]!, "COMPLETED")).toMatchObject({ output: "second", retries: 1 });
    expect(starts(ran)).toHaveLength(2);
  });

  it("loses no job that was acknowledged", async () => {
    for (const job of acknowledged) expect((await statusOf(server, queue, job)).status).toBe("IN_QUEUE");
    const { inQueue } = (await healthOf(server, queue)).jobs;
    expect(inQueue).toBeGreaterThanOrEqual(acknowledged.length);
    expect(inQueue).toBeLessThanOrEqual(acknowledged.length + 8); // at most the requests that were on their way
  });

  it("leaves settings as they were saved", async () => {
    expect(saved.idleTimeout).toBe(77);
    expect((await call(server, "GET", `/v1/endpoints/${saved.id}`)).body).toEqual(saved);
  });

  it("is followed by a start that answers 503 as soon as its port is open", async () => {
    for (const status of statuses.slice(0, -1)) expect(status).toBe(503);
    expect(await reach(server, knocking.endpoint, knocking.job, "COMPLETED")).toMatchObject({ output: 1, retries: 0 });
  });
});

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
    expect(first.log()).not.toContain(key); // logs have more readers than operators
    const target = { url, key };
    const endpoints = (await call(target, "GET", "/v1/endpoints")).body;
    expect(endpoints).toHaveLength(1);
    const demo = endpoints[0].id;
    await until(async () => (await healthOf(target, demo)).jobs.completed > 0, 30_000);
    const [done]: Body[] = (await call(target, "GET", `/v2/${demo}/requests?status=COMPLETED`)).body.requests;
    expect(done).toMatchObject({ status: "COMPLETED", output: expect.anything() });
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
