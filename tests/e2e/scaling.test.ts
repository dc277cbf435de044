import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, journal, startServer, type TestServer, until } from "../harness.js";
import { endWith, makeFolder, makeRunning } from "./handlers.js";
import { makePuppets } from "./puppet.js";
import { type Body, healthOf, reach, statusOf, submit } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", MILLRACE_LOCATION: "CZ" });
});
afterAll(() => server?.end());

const change = (endpoint: string, settings: Record<string, unknown>) =>
  call(server, "PATCH", `/v1/endpoints/${endpoint}`, settings);

/** The number of workers, in any state. */
async function workerCount(endpoint: string): Promise<number> {
  const { workers } = await healthOf(server, endpoint);
  return workers.initializing + workers.idle + workers.running + workers.paused;
}

/** Waits until a waiting job shows one of these reasons. */
function waitReason(endpoint: string, job: string, ...reasons: string[]): Promise<Body> {
  let last: Body;
  return until(async () => {
    last = await statusOf(server, endpoint, job);
    return reasons.includes(last.waitReason) && last;
  }, 30_000).catch(() => {
    throw new Error(`not ${reasons}: ${JSON.stringify(last)}`);
  });
}

describe.concurrent("a worker", () => {
  it("starts for the first job, and is gone after its idle time", async (test) => {
    const endpoint = await makeRunning(test, server, { idleTimeout: 1 });
    expect(await workerCount(endpoint)).toBe(0);
    const job = await submit(server, endpoint, { echo: 1 });
    await reach(server, endpoint, job, "COMPLETED");
    expect((await healthOf(server, endpoint)).workers).toMatchObject({ idle: 1, ready: 1 });
    await until(async () => (await workerCount(endpoint)) === 0, 10_000);
    expect((await reach(server, endpoint, await submit(server, endpoint, { echo: 2 }), "COMPLETED")).output).toBe(2);
  });

  it("is used again within its idle time", async (test) => {
    const endpoint = await makeRunning(test, server, { idleTimeout: 60 });
    const workers = new Set<string>();
    for (let n = 0; n < 5; n++) {
      const { body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: { echo: n } });
      expect(body.output).toBe(n);
      workers.add(body.workerId);
    }
    expect(workers.size).toBe(1);
  });

  it("is subject to a shorter idle time as soon as that is saved", async (test) => {
    const endpoint = await makeRunning(test, server, { idleTimeout: 3_600 });
    await reach(server, endpoint, await submit(server, endpoint), "COMPLETED");
    expect(await workerCount(endpoint)).toBe(1);
    await change(endpoint, { idleTimeout: 1 });
    await until(async () => (await workerCount(endpoint)) === 0, 10_000);
  });

  it("is stopped if idle, and finishes its job if busy, when workersMax becomes 0", async (test) => {
    const folder = makeFolder(test);
    const gate = join(folder, "gate");
    const endpoint = await makeRunning(test, server, { idleTimeout: 3_600, workersMax: 1 });
    const running = await submit(server, endpoint, { gate, echo: "kept" });
    await reach(server, endpoint, running, "IN_PROGRESS");
    const waiting = await submit(server, endpoint, { echo: "waits" });
    await change(endpoint, { workersMax: 0 });
    expect((await waitReason(endpoint, waiting, "workers_max_zero")).waitDetail).toMatch(/\w+ \w+/);
    expect((await statusOf(server, endpoint, running)).status).toBe("IN_PROGRESS");
    writeFileSync(gate, "");
    expect(await reach(server, endpoint, running, "COMPLETED")).toMatchObject({ output: "kept", retries: 0 });
    await until(async () => (await workerCount(endpoint)) === 0);
    expect((await statusOf(server, endpoint, waiting)).status).toBe("IN_QUEUE");
    await change(endpoint, { workersMax: 1 });
    expect((await reach(server, endpoint, waiting, "COMPLETED")).output).toBe("waits");
  });

  it("is replaced by a worker with the new env when its template's env changes", async (test) => {
    const settings = { workersMin: 1, workersMax: 1 };
    const endpoint = await makeRunning(test, server, settings, undefined, { env: { COLOUR: "red" } });
    const run = async () => (await call(server, "POST", `/v2/${endpoint}/runsync`, { input: { env: "COLOUR" } })).body;
    const before = await run();
    expect(before.output).toBe("red");
    const { templateId } = (await call(server, "GET", `/v1/endpoints/${endpoint}`)).body;
    expect((await call(server, "PATCH", `/v1/templates/${templateId}`, { env: { COLOUR: "blue" } })).status).toBe(200);
    const after = await until(async () => {
      const body = await run();
      return body.output === "blue" && body;
    });
    expect(after.workerId).not.toBe(before.workerId);
  });
});

describe.concurrent("the number of workers", () => {
  it("never passes workersMax", async (test) => {
    const folder = makeFolder(test);
    const [gate, ran] = [join(folder, "gate"), join(folder, "ran")];
    const settings = { workersMax: 2, scalerType: "REQUEST_COUNT", scalerValue: 1 };
    const endpoint = await makeRunning(test, server, settings);
    const jobs: string[] = [];
    for (let n = 0; n < 6; n++) jobs.push(await submit(server, endpoint, { gate, journal: ran, name: n }));
    await until(async () => (await healthOf(server, endpoint)).workers.running === 2);
    const body = await waitReason(endpoint, jobs[5] as string, "workers_max_reached");
    expect(body.waitDetail).toMatch(/\w+ \w+/);
    expect(await workerCount(endpoint)).toBe(2);
    writeFileSync(gate, "");
    const workers = new Set<string>();
    for (const job of jobs) workers.add((await reach(server, endpoint, job, "COMPLETED")).workerId);
    expect(workers.size).toBe(2);
    expect(journal(ran).filter((line) => line.includes("start"))).toHaveLength(6);
  });

  it("never falls below workersMin, and a dead worker is replaced", async (test) => {
    const { id: endpoint, puppet, puppets } = await makePuppets(test, server, { workersMin: 2, workersMax: 3 });
    const first = await puppet(0);
    await puppet(1);
    expect(await workerCount(endpoint)).toBe(2);
    for (const worker of puppets()) {
      const poll = new AbortController();
      const taking = worker.take({ signal: poll.signal }).catch(() => undefined);
      test.onTestFinished(() => poll.abort());
      void taking;
    }
    await until(async () => (await healthOf(server, endpoint)).workers.idle === 2);
    first.kill();
    const third = await puppet(2);
    expect(third.alive()).toBe(true);
    expect(await workerCount(endpoint)).toBe(2);
    await change(endpoint, { workersMin: 3 });
    await puppet(3);
    expect(await workerCount(endpoint)).toBe(3);
  });

  it("is one for each scalerValue requests under REQUEST_COUNT", async (test) => {
    const gate = join(makeFolder(test), "gate");
    const settings = { workersMax: 5, scalerType: "REQUEST_COUNT", scalerValue: 2 };
    const endpoint = await makeRunning(test, server, settings);
    const jobs: string[] = [];
    for (let n = 0; n < 5; n++) jobs.push(await submit(server, endpoint, { gate }));
    await until(async () => (await healthOf(server, endpoint)).workers.running === 3);
    await waitReason(endpoint, jobs[4] as string, "workers_busy");
    expect(await workerCount(endpoint)).toBe(3); // ceil(5 / 2), not 5
    writeFileSync(gate, "");
    for (const job of jobs) await reach(server, endpoint, job, "COMPLETED");
  });

  it("grows under QUEUE_DELAY only when the oldest job has waited for scalerValue seconds", async (test) => {
    const gate = join(makeFolder(test), "gate");
    const endpoint = await makeRunning(test, server, { workersMax: 3, scalerValue: 3 });
    const jobs = [await submit(server, endpoint, { gate })];
    await reach(server, endpoint, jobs[0] as string, "IN_PROGRESS");
    jobs.push(await submit(server, endpoint, { gate }), await submit(server, endpoint, { gate }));
    await waitReason(endpoint, jobs[1] as string, "workers_busy");
    expect(await workerCount(endpoint)).toBe(1);
    await until(async () => (await workerCount(endpoint)) > 1, 15_000);
    // the first worker was started for the first job, which ran by then; a decision is recorded after it is carried out
    const started = await until(async () => {
      const { body: decisions } = await call(server, "GET", `/v1/endpoints/${endpoint}/scaling`);
      return decisions.findLast(({ outcome, inputs }: Body) => /^start/.test(outcome) && inputs.running > 0);
    });
    expect(Date.parse(started.from) - started.inputs.oldestAt).toBeGreaterThanOrEqual(3_000);
    await until(async () => (await healthOf(server, endpoint)).workers.running === 3, 10_000);
    writeFileSync(gate, "");
    for (const job of jobs) await reach(server, endpoint, job, "COMPLETED");
  });

  it("does not grow for jobs of low priority, which run when a worker is there", async (test) => {
    const endpoint = await makeRunning(test, server, { idleTimeout: 60 });
    const low = await submit(server, endpoint, { echo: "low" }, { policy: { lowPriority: true } });
    const other = await makeRunning(test, server);
    await reach(server, other, await submit(server, other), "COMPLETED"); // the scaler has run meanwhile
    const body = await statusOf(server, endpoint, low);
    expect(body).toMatchObject({ status: "IN_QUEUE", waitReason: "low_priority", workerId: "" });
    expect(await workerCount(endpoint)).toBe(0);
    const high = await submit(server, endpoint, { echo: "high" });
    expect((await reach(server, endpoint, low, "COMPLETED")).output).toBe("low");
    expect((await reach(server, endpoint, high, "COMPLETED")).output).toBe("high");
  });

  it("falls to one worker when one suffices: the most recently busy worker stays", {
    timeout: 60_000,
  }, async (test) => {
    const endpoint = await makeRunning(test, server, { workersMin: 10, workersMax: 10, idleTimeout: 5 });
    await until(async () => (await healthOf(server, endpoint)).workers.idle === 10, 30_000);
    await change(endpoint, { workersMin: 0 });
    const workers: string[] = [];
    await until(async () => {
      const { body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} });
      workers.push(body.workerId);
      return (await workerCount(endpoint)) === 1;
    }, 50_000);
    const { body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: { echo: "again" } });
    expect(body.output).toBe("again");
    expect(new Set([...workers, body.workerId]).size).toBe(1);
  });
});

describe.concurrent("a waiting job says why", () => {
  it("while its worker is starting", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server, { workersMin: 0, workersMax: 1 });
    const job = await submit(server, endpoint);
    expect((await statusOf(server, endpoint, job)).waitReason).toMatch(/^(no_worker|starting)$/);
    await puppet();
    const body = await waitReason(endpoint, job, "starting");
    expect(body.waitDetail).toMatch(/\w+ \w+/);
    expect((await healthOf(server, endpoint)).workers).toMatchObject({ initializing: 1, ready: 0 });
  });

  it("when no host is in a location that its endpoint names", async (test) => {
    const elsewhere = await makeRunning(test, server);
    const { templateId, name } = (await call(server, "GET", `/v1/endpoints/${elsewhere}`)).body;
    const place = (locations: string) => {
      const input = `{name: "${name}", templateId: "${templateId}", gpuIds: "AMPERE_16", locations: "${locations}"}`;
      return call(server, "POST", "/graphql", { query: `mutation { saveEndpoint(input: ${input}) { id } }` });
    };
    const [far, near] = [await place("US,GB"), await place("CZ,FR")].map((made) => made.body.data.saveEndpoint.id);
    endWith(test, server, far);
    endWith(test, server, near);
    const [there, here] = [await submit(server, far), await submit(server, near)];
    await reach(server, near, here, "COMPLETED");
    expect((await waitReason(far, there, "location")).waitDetail).toMatch(/\w+ \w+/);
    expect(await workerCount(far)).toBe(0);
  });

  it("when its worker dies at every start, with the last lines of its log", { timeout: 60_000 }, async (test) => {
    const say = "console.log('starting up'); console.error('no such model: llama'); process.exit(3)";
    const template = { dockerStartCmd: ["node", "-e", say] };
    const endpoint = await makeRunning(test, server, { workersMax: 1 }, undefined, template);
    const job = await submit(server, endpoint);
    const first = await waitReason(endpoint, job, "start_failed", "crash_looping");
    expect(first.waitDetail).toContain("no such model: llama");
    const body = await waitReason(endpoint, job, "crash_looping");
    expect(body.waitDetail).toContain("no such model: llama");
    expect(body).toMatchObject({ status: "IN_QUEUE", retries: 0, workerId: "" });
    const { templateId } = (await call(server, "GET", `/v1/endpoints/${endpoint}`)).body;
    await call(server, "PATCH", `/v1/templates/${templateId}`, { dockerStartCmd: [] });
    await reach(server, endpoint, job, "COMPLETED"); // a save ends the pause
  });
});

it("the scaler's decisions are listed with their reasons", async (test) => {
  const endpoint = await makeRunning(test, server, { idleTimeout: 1 });
  await reach(server, endpoint, await submit(server, endpoint), "COMPLETED");
  await until(async () => (await workerCount(endpoint)) === 0, 10_000);
  const { status, body } = await call(server, "GET", `/v1/endpoints/${endpoint}/scaling`);
  expect(status).toBe(200);
  expect(body.length).toBeGreaterThanOrEqual(2); // up, and down again
  for (const decision of body) {
    expect(decision).toMatchObject({
      from: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      until: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      inputs: expect.any(Object),
      outcome: expect.stringMatching(/\S/),
      reason: expect.stringMatching(/\w+ \w+/),
    });
    expect(decision.times).toBeGreaterThanOrEqual(1);
  }
  expect((await call(server, "GET", "/v1/endpoints/unknown0000000/scaling")).status).toBe(404);
});
