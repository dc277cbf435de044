import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makePuppets, type Puppet } from "../e2e/puppet.js";
import { isHeld } from "../e2e/wire.js";
import { call, freePort, startServer, type TestServer, until } from "../harness.js";
import { halted } from "./machine/processes.js";
import { startProxy } from "./machine/proxy.js";
import { Scene } from "./scene.js";

let server: TestServer;
let scene: Scene;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  scene = new Scene();
});
afterAll(async () => {
  await server?.end();
  scene?.end();
});

const statusOf = async (endpoint: string, job: string) =>
  (await call(server, "GET", `/v2/${endpoint}/status/${job}`)).body;
const submit = async (endpoint: string, input: Record<string, unknown>): Promise<string> =>
  (await call(server, "POST", `/v2/${endpoint}/run`, { input })).body.id;

/** Writes a request, and hangs up without reading a byte of its answer. */
async function hangUpAfter(url: string, key: string, method = "GET", body = ""): Promise<void> {
  const { hostname, port, host, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  const head = `${method} ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${key}\r\n`;
  socket.on("error", () => {});
  await new Promise<void>((done) => {
    socket.write(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, () => done());
  });
  socket.resetAndDestroy();
}

/** Opens a connection that the server has accepted: it has answered a request on it. */
async function openConnection({ url, port }: TestServer): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write(`GET /healthz HTTP/1.1\r\nhost: ${new URL(url).host}\r\n\r\n`);
  await once(socket, "data");
  return socket;
}

/** Sends several polls at once that disconnect before the server can answer: it is stopped until all have hung up. */
async function pollAndHangUp(worker: Puppet, count: number, meanwhile: () => Promise<unknown>): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openConnection(server)));
  const { host, pathname, search } = new URL(worker.takeUrl(true));
  const authorization = worker.env.RUNPOD_AI_API_KEY ?? "";
  const ask = `GET ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${authorization}\r\n\r\n`;
  const done = meanwhile();
  await halted(server.pid, async () => {
    await Promise.all(sockets.map((socket) => new Promise<unknown>((written) => socket.write(ask, written))));
    for (const socket of sockets) socket.resetAndDestroy();
    await Promise.all(sockets.map((socket) => socket.closed || once(socket, "close")));
  });
  await done;
}

/** Asks for a stream on an open connection; the server can read it when this resolves. */
async function sendPoll(socket: Socket, url: string, accept: string): Promise<void> {
  const { host, pathname, search } = new URL(url);
  const head = `GET ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${server.key}\r\naccept: ${accept}`;
  await new Promise<unknown>((written) => socket.write(`${head}\r\n\r\n`, written));
}

describe("the answer to a take that is lost on the way", () => {
  for (const { words, pollsAtOnce } of [
    { words: "one poll after the other", pollsAtOnce: 1 },
    { words: "several polls at once", pollsAtOnce: 3 },
  ]) {
    it(`gives the job back at once, excused, if the poll disconnects right after it was sent: ${words}`, async (test) => {
      const { id: endpoint, puppet } = await makePuppets(test, server, { workersMin: 2, workersMax: 2 });
      const [hasty, patient] = [await puppet(0), await puppet(1)];
      const jobs: string[] = [];
      for (let n = 0; n < 10; n++) {
        const submitJob = async () => void jobs.push(await submit(endpoint, { n }));
        if (pollsAtOnce === 1) await submitJob();
        await pollAndHangUp(hasty, pollsAtOnce, pollsAtOnce === 1 ? async () => {} : submitJob);
        await call(server, "GET", "/healthz"); // the server has read the polls: it serves connections in order
      }
      jobs.push(await submit(endpoint, { n: jobs.length })); // stored after the last of their takes
      const states = () => Promise.all(jobs.map((job) => statusOf(endpoint, job)));
      const waiting = { status: "IN_QUEUE", retries: 0 };
      // Well before the worker would count as lost.
      await expect.poll(states, { timeout: 20_000 }).toEqual(jobs.map(() => expect.objectContaining(waiting)));
      for (const job of jobs) expect((await patient.take({ inProgress: true })).body?.id).toBe(job);
    });
  }

  it("gives the job back as soon as the worker polls again, if the reply was cut", async () => {
    const port = await freePort();
    const behind = await startServer({ MILLRACE_WORKER_URL: `http://127.0.0.1:${port}` });
    const proxy = await startProxy(behind.port, port);
    try {
      const { endpoint } = await scene.own(behind, { workersMin: 1, workersMax: 1 });
      await until(async () => (await call(behind, "GET", `/v2/${endpoint}/health`)).body.workers.ready === 1);
      const worker = async () =>
        (await call(behind, "GET", `/v1/endpoints/${endpoint}?includeWorkers=true`)).body.workers.map(
          (each: { id: string }) => each.id,
        );
      const before = await worker();
      proxy.cutNext((bytes) => bytes.includes('"key":"cut"'));
      const input = { key: "cut", ms: 10, fate: "return" };
      const sync = await call(behind, "POST", `/v2/${endpoint}/runsync`, { input });
      expect(proxy.cuts()).toBe(1);
      expect(sync.body).toMatchObject({ status: "COMPLETED", retries: 1, workerId: before[0] });
      expect(await worker()).toEqual(before); // it never counted as lost
      expect(scene.runs().filter(({ key }) => key === "cut")).toHaveLength(1);
    } finally {
      await behind.end();
      await proxy.end();
    }
  });
});

describe("a client that hangs up", () => {
  it("in /runsync leaves its job running, and its result can be read", async () => {
    const { endpoint } = await scene.own(server, { workersMax: 1 });
    const body = JSON.stringify({ input: { key: "hung up", ms: 500, fate: "return" } });
    await hangUpAfter(`${server.url}/v2/${endpoint}/runsync`, `Bearer ${server.key}`, "POST", body);
    const run = await until(() => scene.runs().find(({ key, endedAt }) => key === "hung up" && endedAt !== undefined));
    const status = await until(async () => {
      const state = await statusOf(endpoint, run.job);
      return state.status === "COMPLETED" && state;
    });
    expect(status).toMatchObject({ output: { run: run.run }, retries: 0 });
  });

  it("in /stream leaves its job running, and its chunks can be read", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const job = await submit(endpoint, {});
    await worker.take();
    const url = `${server.url}/v2/${endpoint}/stream/${job}?wait=5000`;
    const [poll, events] = [await openConnection(server), await openConnection(server)];
    const begun = once(events, "data");
    const answered = once(poll, "data");
    await sendPoll(events, url, "text/event-stream");
    await sendPoll(poll, url, "application/json");
    await begun; // the head of the events is sent as soon as they are held
    expect(await isHeld(server, endpoint, answered)).toBe(true);
    for (const socket of [poll, events]) socket.resetAndDestroy();
    for (const output of ["a", "b"]) expect((await worker.chunk(job, { output })).status).toBe(200);
    await hangUpAfter(url, `Bearer ${server.key}`);
    await worker.done(job, { output: [] });
    const read = await until(async () => {
      const { body } = await call(server, "GET", `/v2/${endpoint}/stream/${job}`);
      return body.length > 0 && body;
    });
    expect(read.map((chunk: { output: string }) => chunk.output)).toEqual(["a", "b"]);
    expect(await statusOf(endpoint, job)).toMatchObject({ status: "COMPLETED", retries: 0 });
  });
});
