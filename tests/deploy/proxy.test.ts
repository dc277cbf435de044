import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { WebSocket } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { makeFolder, makeQueue, makeRunning } from "../e2e/handlers.js";
import { makePuppets } from "../e2e/puppet.js";
import { healthOf, reach, readEvents, type SentEvent, statusOf, submit } from "../e2e/wire.js";
import { call, startServer, type TestServer, until } from "../harness.js";
import { makeBalanced } from "../lb/balanced.js";
import { type FrontProxy, startProxy } from "./nginx.js";

const sealKey = "5".repeat(64);

let postgres: TestPostgres;
const servers: TestServer[] = [];
let proxy: FrontProxy;
/** Clients know only the proxy. */
let target: { url: string; key: string };
beforeAll(async () => {
  postgres = await startPostgres();
  const settings = {
    MILLRACE_DATABASE_URL: postgres.url(),
    MILLRACE_SEAL_KEY: sealKey,
    MILLRACE_RATE_LIMITS: "off",
  };
  for (const _ of [1, 2]) servers.push(await startServer(settings));
  proxy = await startProxy(servers.map(({ port }) => port));
  target = { url: proxy.url, key: servers[0]!.key };
});
afterAll(async () => {
  await proxy?.end();
  for (const server of servers) await server.end();
  await postgres?.end();
});

/** Reads a job's events; its methods wait for a number of them. */
async function openEvents(endpoint: string, job: string) {
  const reply = await fetch(`${target.url}/v2/${endpoint}/stream/${job}`, {
    headers: { authorization: `Bearer ${target.key}`, accept: "text/event-stream" },
  });
  expect(reply.headers.get("content-type")).toMatch(/^text\/event-stream/);
  const [first, second] = (reply.body as ReadableStream<Uint8Array>).tee();
  let seen = "";
  const reading = (async () => {
    for await (const part of first.pipeThrough(new TextDecoderStream())) seen += part;
  })();
  return { seen: () => seen, events: readEvents(new Response(second)), reading };
}

describe("two servers behind the proxy of deploy/", () => {
  it("run jobs, whichever server gets the request", async (test) => {
    const endpoint = await makeRunning(test, target, { workersMax: 2 });
    const jobs: string[] = [];
    for (let n = 0; n < 6; n++) jobs.push(await submit(target, endpoint, { echo: n }));
    for (const [n, job] of jobs.entries()) expect((await reach(target, endpoint, job, "COMPLETED")).output).toBe(n);
    const done = await call(target, "POST", `/v2/${endpoint}/runsync`, { input: { echo: "now" } });
    expect(done.body).toMatchObject({ status: "COMPLETED", output: "now" });
    expect((await healthOf(target, endpoint)).jobs).toMatchObject({ completed: 7, inQueue: 0 });
  });

  it("hold a request until its result is there", async (test) => {
    const gate = join(makeFolder(test), "gate");
    const endpoint = await makeRunning(test, target);
    const job = await submit(target, endpoint, { gate, echo: "at last" });
    await reach(target, endpoint, job, "IN_PROGRESS");
    const held = call(target, "GET", `/v2/${endpoint}/status-sync/${job}`);
    writeFileSync(gate, "");
    expect((await held).body).toMatchObject({ status: "COMPLETED", output: "at last" });
  });

  it("pass each event on as it arrives", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, target);
    const worker = await puppet();
    const job = await submit(target, endpoint);
    await worker.take();
    const { seen, events, reading } = await openEvents(endpoint, job);
    // The worker makes the next chunk only when the last was seen: a chunk that is held back would block all later
    // ones.
    for (const word of ["one", "two", "three"]) {
      await worker.chunk(job, { output: word });
      await until(() => seen().includes(word));
    }
    await worker.done(job, { output: "end" }, true);
    await reading;
    const data = (await events).map((event: SentEvent) => event.data).join("\n");
    for (const word of ["one", "two", "three"]) expect(data).toContain(word);
  });

  it("accept an input of nearly 20 MB and return it as output; more is refused with a reason", async (test) => {
    const endpoint = await makeRunning(test, target);
    const large = "x".repeat(19.9 * 2 ** 20);
    const done = await call(target, "POST", `/v2/${endpoint}/runsync?wait=120000`, { input: { echo: large } });
    expect([done.status, done.body.status]).toEqual([200, "COMPLETED"]);
    expect(done.body.output === large).toBe(true);
    const refused = await call(target, "POST", `/v2/${endpoint}/runsync`, { input: "x".repeat(21 * 2 ** 20) });
    expect(refused.status).toBe(413);
    expect(refused.body).toMatchObject({ code: expect.any(String), error: expect.stringMatching(/\S/) });
  });

  it("connect a client's WebSocket to a worker, and tell the worker the client's address", async (test) => {
    // One for each server: neither reaches the other's loopback.
    const balanced = await makeBalanced(test, { ...target, port: 0 }, { workersMin: 2, workersMax: 2 });
    const seen = await (await balanced.fetch("/")).text();
    expect(seen).toContain('"x-forwarded-for","127.0.0.1');
    const url = `${balanced.base.replace("http", "ws")}/socket`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${target.key}` } });
    const heard = new Promise<unknown>((resolve, reject) => {
      socket.addEventListener("message", ({ data }) => resolve(data));
      socket.addEventListener("error", ({ error }) => reject(error));
    });
    socket.addEventListener("open", () => socket.send("hello"));
    expect(await heard).toBe("hello");
    socket.close();
  });

  it("do not show their metrics through the proxy", async () => {
    expect((await fetch(`${target.url}/metrics`)).status).toBe(404);
    expect((await fetch(`${servers[0]!.url}/metrics`)).status).toBe(200);
  });

  it("lose nothing when one is killed and comes back; a client that retries with an Idempotency-Key gets each job once", async (test) => {
    const endpoint = await makeQueue(test, target);
    const acknowledged: string[] = [];
    let stop = false;
    test.onTestFinished(() => void (stop = true));
    const clients = Array.from({ length: 4 }, async (_, client) => {
      for (let n = 0; !stop; n++) acknowledged.push(await submitUntilHeard(endpoint, `${client}-${n}`));
    });
    await until(() => acknowledged.length > 20);
    const held = call(target, "GET", `/v2/${endpoint}/status-sync/${acknowledged[0]}?wait=3000`);
    await servers[1]!.kill();
    const before = acknowledged.length;
    await until(() => acknowledged.length > before + 20);
    // The proxy has sent a GET that the dead server held to the other server.
    expect((await held).body).toMatchObject({ status: "IN_QUEUE" });
    await servers[1]!.restart();
    const again = acknowledged.length;
    await until(() => acknowledged.length > again + 20);
    stop = true;
    await Promise.all(clients);
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    for (const job of acknowledged) expect((await statusOf(target, endpoint, job)).status).toBe("IN_QUEUE");
    expect((await healthOf(target, endpoint)).jobs.inQueue).toBe(acknowledged.length);
  });

  it("have a JSON error returned by the proxy if neither answers", async () => {
    await servers[0]!.kill();
    await servers[1]!.kill();
    const reply = await call(target, "GET", "/v1/endpoints");
    expect(reply.status).toBe(503);
    expect(reply.body).toMatchObject({ code: "UNAVAILABLE", error: expect.stringMatching(/No server answered/) });
    expect(reply.headers.get("retry-after")).toBe("1");
    await servers[0]!.restart();
    await until(async () => (await call(target, "GET", "/v1/endpoints")).status === 200);
    await servers[1]!.restart();
  });
});

/** Repeats the same key until there is an answer, as a client would. */
async function submitUntilHeard(endpoint: string, key: string): Promise<string> {
  return until(async () => {
    const reply = await call(target, "POST", `/v2/${endpoint}/run`, { input: { key } }, { "idempotency-key": key });
    if (reply.status === 200) return reply.body.id as string;
    expect(reply.status, JSON.stringify(reply.body)).toBe(503);
    return undefined;
  });
}
