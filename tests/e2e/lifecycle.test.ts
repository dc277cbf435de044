import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, journal, startServer, type TestServer, until } from "../harness.js";
import { type Ending, makeFolder, makeQueue, makeRunning } from "./handlers.js";
import { type HeldJob, isAlive, makeHeld } from "./puppet.js";
import { type Body, healthOf, reach, statusOf, submit } from "./wire.js";

/** A server for one test, which ends with it. */
async function startOwn(test: Ending, env: Record<string, string> = {}): Promise<TestServer> {
  const server = await startServer(env);
  test.onTestFinished(() => server.end());
  return server;
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
