import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeFolder, makeRunning } from "./handlers.js";
import { allWorkersOf, complete, decisionsOf, inState, releasesOf, save, workerOf, workersOf } from "./life.js";
import { type Body, expectRefusal, healthOf, reach, statusOf, submit } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
});
afterAll(() => server?.end());

/** Reports its make after the requested number of milliseconds; with BROKEN set it ends at its start. */
const made = `
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
if (process.env.BROKEN) throw new Error("the weights of " + process.env.MAKE + " are not there");
export default async ({ ms = 0, gate }) => {
  await sleep(ms);
  while (gate && !existsSync(gate)) await sleep(20);
  return process.env.MAKE;
};
`;
const makeMade = (test: Parameters<typeof makeRunning>[0], settings: Record<string, unknown>) =>
  makeRunning(test, server, { env: { MAKE: "1" }, ...settings }, made);
const versionsOf = async (endpoint: string) => (await workersOf(server, endpoint)).map(({ version }) => version);

describe.concurrent("a save that changes a worker's definition", () => {
  it("makes a new version, and replaces idle workers at once", async (test) => {
    const endpoint = await makeMade(test, { workersMin: 1, workersMax: 2 });
    const old = await inState(server, endpoint, "idle");
    expect(await save(server, endpoint, { env: { MAKE: "2" } })).toMatchObject({ version: 2 });
    await until(async () => (await versionsOf(endpoint)).join() === "2");
    expect((await complete(server, endpoint)).output).toBe("2");
    const ended = await inState(server, endpoint, "ended", { id: old.id });
    expect(ended).toMatchObject({ version: 1, why: expect.stringMatching(/new version \(2\)/) });
    expect(await releasesOf(server, endpoint)).toMatchObject([
      { version: 2, state: "current", workers: 1, env: { MAKE: "2" } },
      { version: 1, state: "past", workers: 0, env: { MAKE: "1" } },
    ]);
  });

  it("makes no version if it changes only numbers, times or names", async (test) => {
    const endpoint = await makeMade(test, { workersMin: 1 });
    const { id } = await inState(server, endpoint, "idle");
    const settings = { name: "renamed", workersMax: 2, idleTimeout: 9, scalerValue: 7, executionTimeoutMs: 9_000 };
    expect(await save(server, endpoint, { ...settings, env: { MAKE: "1" } })).toMatchObject({ version: 1 });
    expect(await releasesOf(server, endpoint)).toHaveLength(1);
    expect(await workersOf(server, endpoint)).toMatchObject([{ id, version: 1 }]);
  });

  it("lets a busy worker finish, outdated, while the new version takes new jobs", async (test) => {
    const endpoint = await makeMade(test, { workersMax: 2 });
    const gate = join(makeFolder(test), "gate");
    const job = await submit(server, endpoint, { gate });
    const { workerId } = await reach(server, endpoint, job, "IN_PROGRESS");
    await save(server, endpoint, { env: { MAKE: "2" } });
    const old = await inState(server, endpoint, "outdated", { id: workerId });
    expect(old).toMatchObject({ version: 1, jobs: 1, why: expect.stringMatching(/version 2/) });
    const next = await complete(server, endpoint);
    expect(next.output).toBe("2");
    expect(next.workerId).not.toBe(workerId);
    writeFileSync(gate, "");
    expect(await reach(server, endpoint, job, "COMPLETED")).toMatchObject({ output: "1", workerId, retries: 0 });
    const ended = await inState(server, endpoint, "ended", { id: workerId });
    expect(ended.why).toMatch(/version \(?2\)? replaces/);
  });

  it("loses and fails no job under a steady stream, and leaves no old worker", {
    timeout: 90_000,
  }, async (test) => {
    const endpoint = await makeMade(test, {
      workersMin: 2,
      workersMax: 4,
      scalerType: "REQUEST_COUNT",
      scalerValue: 2,
    });
    await complete(server, endpoint);
    const jobs: string[] = [];
    let isOver = false;
    let least = Number.POSITIVE_INFINITY;
    const client = async () => {
      while (!isOver) {
        const job = await submit(server, endpoint, { ms: 30 });
        jobs.push(job);
        await until(async () => (await statusOf(server, endpoint, job)).status !== "IN_QUEUE");
      }
    };
    const watcher = async () => {
      while (!isOver) least = Math.min(least, (await healthOf(server, endpoint)).workers.ready);
    };
    const busy = [client(), client(), client(), watcher()];
    for (const make of ["2", "3", "4"]) {
      await save(server, endpoint, { env: { MAKE: make } });
      const before = jobs.length;
      await until(async () => {
        const [newest] = await releasesOf(server, endpoint);
        return newest.state === "current" && jobs.length > before;
      }, 30_000);
    }
    isOver = true;
    await Promise.all(busy);
    const ends: Body[] = [];
    for (const job of jobs) ends.push(await reach(server, endpoint, job, "COMPLETED"));
    expect(ends.map(({ retries }) => retries)).toEqual(jobs.map(() => 0));
    const makes = new Set(ends.map(({ output }) => output));
    expect([...makes].sort()).toEqual(["1", "2", "3", "4"].filter((make) => makes.has(make)));
    expect(ends.at(-1)?.output).toBe("4");
    expect(least).toBeGreaterThan(0); // at every moment some worker could take a job
    expect(new Set(await versionsOf(endpoint))).toEqual(new Set([4]));
    const all = await allWorkersOf(server, endpoint);
    expect(all.filter(({ version, state }) => version < 4 && state !== "ended")).toEqual([]);
    expect((await releasesOf(server, endpoint)).map(({ version, state }) => [version, state])).toEqual([
      [4, "current"],
      [3, "past"],
      [2, "past"],
      [1, "past"],
    ]);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ failed: 0, retried: 0, inQueue: 0 });
  });
});

describe.concurrent("a version that does not come up", () => {
  it("stops rolling after three failed starts, keeps the old workers, and says so; a rollback ends it", async (test) => {
    const endpoint = await makeMade(test, { workersMin: 1, workersMax: 2, idleTimeout: 1 });
    const { id } = await inState(server, endpoint, "idle");
    await save(server, endpoint, { env: { MAKE: "2", BROKEN: "1" } });
    let isStopped = false;
    const served = (async () => {
      const ids = new Set<string>();
      while (!isStopped) ids.add((await complete(server, endpoint)).workerId);
      return ids;
    })();
    const stopped = await until(async () => {
      const [newest] = await releasesOf(server, endpoint);
      return newest.state === "stopped" && newest.why && newest;
    }, 30_000);
    isStopped = true;
    expect(await served).toEqual(new Set([id]));
    expect(stopped).toMatchObject({ version: 2, why: expect.stringMatching(/the weights of 2 are not there/) });
    expect(stopped.stoppedAt).toBeDefined();
    const tries = await until(async () => {
      const all = (await allWorkersOf(server, endpoint)).filter(({ version }) => version === 2);
      return all.every(({ exit }) => exit) && all; // the last one may still be ending
    });
    expect(tries.map(({ exit }) => exit?.cause)).toEqual(["start", "start", "start"]);
    expect((await complete(server, endpoint)).output).toBe("1");
    const [kept] = await workersOf(server, endpoint);
    expect(kept).toMatchObject({ id, version: 1 });
    const [decision] = await decisionsOf(server, endpoint);
    expect(decision.reason).toMatch(/^version 2 failed at its start, version 1 keeps serving/);

    const back = await call(server, "POST", `/v1/endpoints/${endpoint}/releases/1/rollback`);
    expect(back).toMatchObject({ status: 200, body: { version: 3, env: { MAKE: "1" } } });
    await until(async () => (await releasesOf(server, endpoint))[0]?.state === "current");
    expect(await releasesOf(server, endpoint)).toMatchObject([
      { version: 3, rollbackOf: 1, env: { MAKE: "1" } },
      { version: 2, state: "past" },
      { version: 1, state: "past" },
    ]);
    expect((await complete(server, endpoint)).output).toBe("1");
    await inState(server, endpoint, "ended", { id });
  });

  it("leaves the work to the previous version, even if that has no worker at the moment", async (test) => {
    const endpoint = await makeMade(test, { workersMax: 1 });
    await complete(server, endpoint);
    await save(server, endpoint, { env: { MAKE: "2", BROKEN: "1" } });
    const done = await complete(server, endpoint);
    expect(done).toMatchObject({ output: "1", retries: 0 });
    expect(await workerOf(server, done.workerId)).toMatchObject({ version: 1 });
    expect((await releasesOf(server, endpoint)).map(({ version, state }) => [version, state])).toEqual([
      [2, "stopped"],
      [1, "current"],
    ]);
    await save(server, endpoint, { env: { MAKE: "3" } });
    await until(async () => (await complete(server, endpoint)).output === "3");
  });

  it("without a previous version keeps its jobs waiting, with the reason, until a save fixes it", async (test) => {
    const endpoint = await makeMade(test, { env: { MAKE: "1", BROKEN: "1" } });
    const job = await submit(server, endpoint);
    const waiting = await until(async () => {
      const body = await statusOf(server, endpoint, job);
      return body.waitReason === "crash_looping" && body;
    });
    expect(waiting.waitDetail).toMatch(/the weights of 1 are not there/);
    expect((await releasesOf(server, endpoint))[0]).toMatchObject({ version: 1, state: "unproven" });
    await save(server, endpoint, { env: { MAKE: "2" } });
    expect((await reach(server, endpoint, job, "COMPLETED")).output).toBe("2");
  });
});

describe.concurrent("a rollback", () => {
  it("restores the workers' definition, and nothing else", async (test) => {
    const endpoint = await makeMade(test, { workersMax: 1 });
    expect((await complete(server, endpoint)).output).toBe("1");
    await save(server, endpoint, { env: { MAKE: "2" }, name: "renamed", idleTimeout: 33 });
    expect((await complete(server, endpoint)).output).toBe("2");
    const { body } = await call(server, "POST", `/v1/endpoints/${endpoint}/releases/1/rollback`);
    expect(body).toMatchObject({
      version: 3,
      env: { MAKE: "1" },
      name: expect.stringMatching(/^renamed/),
      idleTimeout: 33,
    });
    expect((await complete(server, endpoint)).output).toBe("1");
  });

  it("restores a template too", async (test) => {
    const endpoint = await makeMade(test, { workersMax: 1 });
    const { body } = await call(server, "GET", `/v1/endpoints/${endpoint}`);
    await call(server, "PATCH", `/v1/templates/${body.templateId}`, { env: { MAKE: "other", MORE: "x" } });
    const [newest] = await releasesOf(server, endpoint);
    expect(newest).toMatchObject({ version: 2, env: { MORE: "x" } });
    await call(server, "POST", `/v1/endpoints/${endpoint}/releases/1/rollback`);
    const [last] = await releasesOf(server, endpoint);
    expect(last).toMatchObject({ version: 3, rollbackOf: 1 });
    expect(last.env).not.toHaveProperty("MORE");
  });

  it("to an unknown or the present version is refused with a reason", async (test) => {
    const endpoint = await makeMade(test, {});
    const to = (version: string) => call(server, "POST", `/v1/endpoints/${endpoint}/releases/${version}/rollback`);
    expectRefusal(await to("1"), 400, /current/);
    expectRefusal(await to("7"), 404, /7/);
    for (const odd of ["0", "-1", "x", "1e9", "99999999999"]) expectRefusal(await to(odd), 400, /number/);
    expectRefusal(await call(server, "GET", "/v1/endpoints/unknown0000000/releases"), 404);
    expect(await releasesOf(server, endpoint)).toHaveLength(1);
  });
});

describe.concurrent("a restart", () => {
  it("replaces idle workers at once and busy ones after their job, with the same content", async (test) => {
    const gate = join(makeFolder(test), "gate");
    const endpoint = await makeMade(test, { workersMax: 1, idleTimeout: 3_600 });
    const first = await complete(server, endpoint);
    const { body } = await call(server, "POST", `/v1/endpoints/${endpoint}/restart`);
    expect(body).toMatchObject({ id: endpoint, version: 2, env: { MAKE: "1" } });
    const second = await complete(server, endpoint);
    expect(second.workerId).not.toBe(first.workerId);
    const busy = await submit(server, endpoint, { gate });
    await reach(server, endpoint, busy, "IN_PROGRESS");
    await call(server, "POST", `/v1/endpoints/${endpoint}/restart`);
    const waiting = await submit(server, endpoint, {});
    expect((await statusOf(server, endpoint, busy)).status).toBe("IN_PROGRESS");
    writeFileSync(gate, "");
    expect(await reach(server, endpoint, busy, "COMPLETED")).toMatchObject({ workerId: second.workerId, retries: 0 });
    expect((await reach(server, endpoint, waiting, "COMPLETED")).workerId).not.toBe(second.workerId);
    const [newest] = await releasesOf(server, endpoint);
    expect(newest).toMatchObject({ version: 3, env: { MAKE: "1" } });
    expect(newest).not.toHaveProperty("rollbackOf");
    expectRefusal(await call(server, "POST", "/v1/endpoints/unknown0000000/restart"), 404);
  });
});
