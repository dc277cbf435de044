import { rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { type Ending, makeQueue, makeRunning } from "../e2e/handlers.js";
import { makePuppets, type PuppetEndpoint } from "../e2e/puppet.js";
import { makeVolume } from "../e2e/resources.js";
import { type Body, healthOf, reach, readEvents, type SentEvent, statusOf, submit, textCall } from "../e2e/wire.js";
import { call, freePort, startServer, type TestServer, until } from "../harness.js";
import { ask, change, makeTarget, move, onSqlite, startOnce } from "./move.js";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres?.end());

/** Answers each webhook as the test sets, and counts the calls. */
interface Receiver {
  readonly url: string;
  status: number;
  readonly calls: { path: string; id: string }[];
}

async function startReceiver(test: Ending): Promise<Receiver> {
  const port = await freePort();
  const receiver: Receiver = { url: `http://127.0.0.1:${port}`, status: 200, calls: [] };
  const server: Server = createServer((request, reply) => {
    request.resume();
    receiver.calls.push({ path: request.url ?? "", id: String(request.headers["webhook-id"]) });
    reply.writeHead(request.url === "/later" ? receiver.status : 200).end();
  });
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  test.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return receiver;
}

const strange = { text: "é漢\u2028😀\u0000", n: 1.5e300, " ": [{}, [], null], nested: { "": "" } };

/** Everything that a service may store. */
interface Filled {
  readonly server: TestServer;
  readonly receiver: Receiver;
  /** An endpoint whose jobs wait, without workers. */
  readonly queue: string;
  readonly real: string;
  readonly puppets: PuppetEndpoint;
  /** Held by a puppet, with chunks. */
  readonly held: string;
  /** Jobs that wait at the puppets' endpoint, in order. */
  readonly waiting: readonly string[];
  readonly keyed: string;
  readonly jobs: readonly (readonly [endpoint: string, job: string])[];
}

const keyed = (server: TestServer, endpoint: string) =>
  call(server, "POST", `/v2/${endpoint}/run`, { input: { n: 1 } }, { "idempotency-key": "the-same" });

async function fillReal(test: Ending, server: TestServer, receiver: Receiver) {
  const env = { GREETING: "grüß dich" };
  const real = await makeRunning(test, server, { workersMax: 2, name: "real é" }, undefined, { env });
  const done = await submit(
    server,
    real,
    { echo: strange },
    { webhook: `${receiver.url}/now`, policy: { ttl: 3_600_000 } },
  );
  const large = await submit(server, real, { echo: "x".repeat(3_000_000) });
  const failed = await submit(server, real, { fail: "it \u0000 broke 😀" }, { webhook: `${receiver.url}/later` });
  const late = await submit(server, real, { gate: "/nowhere" }, { policy: { executionTimeout: 5_000 } });
  const states = ["COMPLETED", "COMPLETED", "FAILED", "TIMED_OUT"];
  const jobs = [done, large, failed, late];
  for (const [n, job] of jobs.entries()) await reach(server, real, job, states[n] as string);
  await call(server, "PATCH", `/v1/endpoints/${real}`, { workersMax: 0 });
  await until(async () => Object.values((await healthOf(server, real)).workers).every((count) => count === 0), 40_000);
  return { real, jobs: jobs.map((job) => [real, job] as const) };
}

async function fillQueue(test: Ending, server: TestServer) {
  const queue = await makeQueue(test, server);
  const policy = { lowPriority: true };
  const jobs = [
    await submit(server, queue, strange),
    await submit(server, queue, { n: 2 }, { policy }),
    await submit(
      server,
      queue,
      { n: 3 },
      { s3Config: { accessId: "a", accessSecret: "b", bucketName: "c", endpointUrl: "http://d" } },
    ),
    await submit(server, queue, { n: 4 }),
  ];
  await call(server, "POST", `/v2/${queue}/cancel/${jobs[3]}`);
  const key = (await keyed(server, queue)).body.id;
  return { queue, keyed: key, jobs: [...jobs, key].map((job) => [queue, job] as const) };
}

async function fillPuppets(test: Ending, server: TestServer) {
  const puppets = await makePuppets(test, server, { idleTimeout: 300 });
  const puppet = await puppets.puppet();
  const { id } = puppets;
  const held = await submit(server, id, strange);
  expect((await puppet.take()).body.id).toBe(held);
  for (const output of ["first", strange]) await puppet.chunk(held, { output });
  const again = await submit(server, id, { n: "again" });
  const first = await submit(server, id, { n: "first" });
  const low = await submit(server, id, { n: "low" }, { policy: { lowPriority: true } });
  expect((await puppet.take({ inProgress: true })).body.id).toBe(again);
  await puppet.done(again, { error: "once" });
  await call(server, "POST", `/v2/${id}/retry/${again}`);
  const last = await submit(server, id, { n: "last" });
  await puppet.ping([held]);
  const waiting = [first, low, again, last];
  return { puppets, held, waiting, jobs: [held, ...waiting].map((job) => [id, job] as const) };
}

async function fill(test: Ending, server: TestServer): Promise<Filled> {
  const receiver = await startReceiver(test);
  receiver.status = 500;
  await makeVolume(server, { name: "data ü" });
  const gone = await makeQueue(test, server);
  await submit(server, gone);
  await call(server, "DELETE", `/v1/endpoints/${gone}`);
  const parts = [
    await fillReal(test, server, receiver),
    await fillQueue(test, server),
    await fillPuppets(test, server),
  ] as const;
  const jobs = parts.flatMap((part) => part.jobs);
  await until(() => receiver.calls.length >= 2);
  return { server, receiver, ...parts[0], ...parts[1], ...parts[2], jobs };
}

/** The replies of every public route, as their original text. */
async function shown({ server, queue, real, puppets, jobs }: Filled): Promise<Record<string, unknown>> {
  const endpoints = [queue, real, puppets.id];
  const paths = [
    ...["endpoints", "templates", "networkvolumes", "webhooks/secret"].map((name) => `/v1/${name}`),
    ...["endpoints", "templates"].map((name) => `/sdk/v1/${name}`),
    ...endpoints.flatMap((id) => [`/v1/endpoints/${id}`, `/v2/${id}/health`, `/v2/${id}/requests`]),
    ...jobs.map(([endpoint, job]) => `/v2/${endpoint}/status/${job}`),
  ];
  const found: Record<string, unknown> = {};
  for (const path of paths) {
    const { status, text } = await textCall(server, "GET", path);
    expect(status, `${path}: ${text}`).toBe(200);
    found[path] = withoutPassingTime(text);
  }
  return found;
}

/** Removes the times of unfinished jobs, which depend on the time of the request, and the measured size of volumes. */
const withoutPassingTime = (text: string) =>
  text
    .replace(/("status":"IN_(?:QUEUE|PROGRESS)"),"delayTime":\d+,"executionTime":\d+/g, "$1")
    .replace(/,"(?:usedBytes|usedAt|usedAtLeast|sizePassed)":(?:"[^"]*"|[^,}]*)/g, "");

const deliveriesOf = async (server: TestServer): Promise<Body[]> =>
  (await call(server, "GET", "/v1/webhooks/deliveries")).body;

/** The chunks of a job, read as events, which every reader gets. */
async function chunksOf(server: TestServer, endpoint: string, job: string): Promise<unknown[]> {
  const reply = await fetch(`${server.url}/v2/${endpoint}/stream/${job}`, {
    headers: { authorization: `Bearer ${server.key}`, accept: "text/event-stream" },
  });
  const chunks = (events: readonly SentEvent[]) => events.filter(({ id }) => id !== undefined);
  const events = await readEvents(reply, (all) => chunks(all).length >= 2);
  return chunks(events).map(({ id, data }) => [id, data]);
}

/** Starts the server again over the same directory, on PostgreSQL. */
async function startMoved(test: Ending, { dataDir, port }: TestServer, target: string): Promise<TestServer> {
  const server = await startServer({
    MILLRACE_DATA_DIR: dataDir,
    MILLRACE_PORT: String(port),
    MILLRACE_DATABASE_URL: target,
    MILLRACE_RATE_LIMITS: "off",
  });
  test.onTestFinished(() => server.end());
  return server;
}

describe("a service that was killed under load and moved", () => {
  it("shows the same data, finishes held jobs, runs waiting jobs in order, and recognises its keys", async (test) => {
    const before = await startServer(onSqlite);
    test.onTestFinished(() => before.end());
    const filled = await fill(test, before);
    const { receiver, puppets, held, waiting, queue } = filled;
    const shownBefore = await shown(filled);
    const deliveriesBefore = await deliveriesOf(before);
    const chunksBefore = await chunksOf(before, puppets.id, held);
    await before.kill();

    const target = await makeTarget(postgres);
    const moved = await move(before.dataDir, target);
    expect(moved).toMatchObject({ code: 0, text: expect.stringMatching(/^Moved [\d,]+ rows in/m) });
    receiver.status = 200;
    const server = await startMoved(test, before, target);
    expect(server.log()).not.toMatch(/does not answer|error/i);

    expect(await shown({ ...filled, server })).toEqual(shownBefore);
    expect(chunksBefore).toHaveLength(2);
    expect(await chunksOf(server, puppets.id, held)).toEqual(chunksBefore);
    await expectDeliveries(server, receiver, deliveriesBefore);
    expect((await keyed(server, queue)).body.id).toBe(filled.keyed);

    const puppet = await puppets.puppet();
    expect(puppet.alive()).toBe(true);
    expect((await puppet.done(held, { output: strange })).status).toBe(200);
    expect(await statusOf(server, puppets.id, held)).toMatchObject({
      status: "COMPLETED",
      output: strange,
      retries: 0,
    });
    const newest = await submit(server, puppets.id, { n: "newest" });
    const order: string[] = [];
    for (const _ of [...waiting, newest]) order.push((await puppet.take({ inProgress: true })).body?.id);
    expect(order).toEqual([...waiting, newest]);
    await expectNumbersGoOn(target);
  });
});

/** Delivered webhooks stay delivered; pending ones are attempted again, under the same id. */
async function expectDeliveries(server: TestServer, receiver: Receiver, before: Body[]): Promise<void> {
  expect(before.map(({ state }) => state).sort()).toEqual(["delivered", "pending"]);
  const after = await until(async () => {
    const now = await deliveriesOf(server);
    return now.every(({ state }) => state === "delivered") && now;
  }, 40_000);
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  const [first, second] = receiver.calls.filter(({ path }) => path === "/later");
  expect(second?.id).toBe(first?.id);
}

/** The next number of each table exceeds all its rows, and so does the next place in the queue. */
async function expectNumbersGoOn(target: string): Promise<void> {
  for (const table of ["endpoint", "worker", "delivery", "template", "host", "decision"]) {
    const [row] = await ask(
      target,
      `SELECT max(no) < nextval(pg_get_serial_sequence('${table}', 'no')) AS on FROM ${table}`,
    );
    expect(row, table).toEqual({ on: true });
  }
  const [row] = await ask(target, "SELECT max(greatest(no, place)) < nextval('place') AS on FROM job");
  expect(row).toEqual({ on: true });
}

describe("50,000 jobs", () => {
  it("are moved with their counts, and can be read in the new database", async (test) => {
    const dataDir = await startOnce();
    test.onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    const before = await startServer({ ...onSqlite, MILLRACE_DATA_DIR: dataDir });
    test.onTestFinished(() => before.end());
    const queue = await makeQueue(test, before);
    await before.stop();
    await change(dataDir, manyJobs(50_000));
    const target = await makeTarget(postgres);
    const moved = await move(dataDir, target);
    expect(moved.code, moved.text).toBe(0);
    console.log(moved.text.trim());
    const server = await startMoved(test, before, target);
    const { jobs } = (await call(server, "GET", `/v2/${queue}/health`)).body;
    expect(jobs).toMatchObject({ completed: 25_000, inQueue: 25_000 });
    expect(await statusOf(server, queue, "job-00050000-u1")).toMatchObject({ status: "IN_QUEUE" });
    expect(await statusOf(server, queue, "job-00049999-u1")).toMatchObject({
      status: "COMPLETED",
      output: { at: 49_999 },
    });
    expect((await call(server, "POST", `/v2/${queue}/purge-queue`)).body.removed).toBe(25_000);
  });
});

/** Jobs of the first endpoint, of which every second is completed. */
const manyJobs = (count: number) => {
  const each = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})`;
  const later = Date.now() + 3_600_000;
  return `BEGIN;
    INSERT INTO job (no, endpoint_no, id, place, status, low_priority, created_at, queued_at, taken_at, finished_at, ttl_end_at,
      expires_at, execution_timeout_ms, retention_ms, has_webhook, keyed)
    ${each} SELECT n, 1, format('job-%08d-u1', n), n, 2 * (n % 2), 0, 1, 1, iif(n % 2, 1, NULL), iif(n % 2, 2, NULL), ${later},
      ${later}, 600000, 3600000, 0, 0 FROM n;
    INSERT INTO job_input (job_no, body) ${each} SELECT n, '{"n":' || n || ',"text":"' || hex(zeroblob(150)) || '"}' FROM n;
    INSERT INTO job_output (job_no, output) ${each} SELECT n, '{"at":' || n || '}' FROM n WHERE n % 2 = 1;
    INSERT INTO tally VALUES (1, ${count / 2}, ${count / 2}, 0, ${count / 2}, 0, 0);
    UPDATE counter SET value = ${count + 1};
    COMMIT`;
};
