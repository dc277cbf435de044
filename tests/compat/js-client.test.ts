import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startServer, type TestServer, until } from "../harness.js";
import {
  type Deployment,
  deploy,
  jsClient,
  reached,
  removeFolders,
  type Said,
  settled,
  submit,
  waitingEndpoint,
} from "./stock.js";

let server: TestServer;
let plain: Deployment;
let awaiting: Deployment;
let streaming: Deployment;
/** An endpoint without workers: its jobs wait. */
let idle: string;

beforeAll(async () => {
  server = await startServer();
  const warm = { workersMin: 1, idleTimeout: 120 };
  [plain, awaiting, streaming] = await Promise.all([
    deploy(server, "plain", warm),
    deploy(server, "awaiting", warm),
    deploy(server, "streaming", warm),
  ]);
  idle = await waitingEndpoint(server);
});

afterAll(async () => {
  await server?.end();
  removeFolders();
});

const client = (id: string, key = server.key) => jsClient(server, id, key);

async function collect(generator: AsyncGenerator<Said>): Promise<Said[]> {
  const found: Said[] = [];
  for await (const chunk of generator) found.push(chunk);
  return found;
}

/** The client's outgoing calls: method, path, and body. */
async function callsOf<T>(deed: () => Promise<T>): Promise<{ result: T; calls: { url: string; init: RequestInit }[] }> {
  const spy = vi.spyOn(globalThis, "fetch");
  try {
    const result = await deed();
    return { result, calls: spy.mock.calls.map(([url, init]) => ({ url: String(url), init: init ?? {} })) };
  } finally {
    spy.mockRestore();
  }
}

describe("the stock JavaScript client", () => {
  it("submits a job and reads its state until it is done", async () => {
    const endpoint = client(plain.id);
    const input = { do: "echo", text: "wörd", numbers: [1, 2.5, null], nested: { deep: true } };
    const submitted = await endpoint.run({ input });
    expect(submitted).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}-u1$/), status: "IN_QUEUE" });
    const done: Said = await until(async () => {
      const status: Said = await endpoint.status(submitted.id);
      expect(status.started).toBe(true);
      return status.completed && status;
    }, 30_000);
    expect(done).toMatchObject({ id: submitted.id, status: "COMPLETED", succeeded: true, output: input });
    expect(done.workerId).toMatch(/^[a-z0-9]{14}$/);
    for (const time of [done.delayTime, done.executionTime]) expect(Number.isInteger(time)).toBe(true);
  });

  it("waits for a result in one call", async () => {
    const result: Said = await client(plain.id).runSync({ input: { do: "echo", n: 1 } });
    expect(result).toMatchObject({
      status: "COMPLETED",
      completed: true,
      succeeded: true,
      output: { do: "echo", n: 1 },
    });
    expect(result.id).toMatch(/^sync-[0-9a-f-]{36}-u1$/);
  });

  it("continues to wait with the held status call when the first wait was too short", async () => {
    const endpoint = client(awaiting.id);
    await endpoint.runSync({ input: {} });
    const { result, calls } = await callsOf(() => endpoint.runSync({ input: { seconds: 2.5 } }, 2_000));
    expect(result).toMatchObject({ status: "COMPLETED", completed: true, output: { slept: 2.5 } });
    expect(calls.some(({ url }) => url.includes("/status-sync/"))).toBe(true);
    expect(calls.length).toBeLessThanOrEqual(4);
  });

  it("holds a status call until the job is final", async () => {
    const endpoint = client(awaiting.id);
    const { id } = await endpoint.run({ input: { seconds: 1.5 } });
    const { result, calls } = await callsOf(() => endpoint.statusSync(id));
    expect(result).toMatchObject({ id, status: "COMPLETED", output: { slept: 1.5 }, completed: true, succeeded: true });
    expect(calls.length).toBe(1);
  });

  it("gets the present state when no worker takes its job in time", async () => {
    const result: Said = await client(idle).runSync({ input: {} }, 1_000);
    expect(result).toMatchObject({
      status: "IN_QUEUE",
      completed: false,
      workerId: "",
      waitReason: "workers_max_zero",
    });
    await client(idle).cancel(result.id);
  });

  it("gets a failure with its reason, and a job without output", async () => {
    const failed: Said = await client(plain.id).runSync({ input: { do: "fail", text: "out of cheese" } });
    expect(failed).toMatchObject({ status: "FAILED", completed: true, succeeded: false });
    expect(failed.error).toContain("out of cheese");
    expect(failed).not.toHaveProperty("output");
    const none: Said = await client(plain.id).runSync({ input: { do: "none" } });
    expect(none).toMatchObject({ status: "COMPLETED", succeeded: true });
    expect(none).not.toHaveProperty("output");
    expect(none).not.toHaveProperty("error");
  });

  it("hands a worker the job's own fields and no unknown field", async () => {
    const received: Said[] = [];
    const receiver = createServer((hook, reply) => {
      let text = "";
      hook.on("data", (part) => (text += part));
      hook.on("end", () => {
        received.push(JSON.parse(text));
        reply.end();
      });
    });
    await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
    const { port } = receiver.address() as { port: number };
    try {
      const s3Config = { accessId: "a", accessSecret: "b-secret", bucketName: "c", endpointUrl: "d", objectPath: "e" };
      const webhook = `http://127.0.0.1:${port}/done`;
      const payload = { input: { do: "keys" }, webhook, webhookV2: webhook, s3Config, policy: { ttl: 60_000 } };
      const result: Said = await client(plain.id).runSync(payload);
      expect(result).toMatchObject({ status: "COMPLETED", output: ["id", "input", "policy", "s3Config", "webhook"] });
      expect(JSON.stringify(result)).not.toContain("b-secret");
      const hook = await until(() => received[0]);
      expect(hook).toMatchObject({
        id: result.id,
        status: "COMPLETED",
        output: result.output,
        input: { do: "keys" },
        webhook,
      });
      expect(JSON.stringify(hook)).not.toContain("b-secret");
    } finally {
      receiver.close();
      receiver.closeAllConnections();
    }
  });

  it("streams every chunk once and in order, and stops at the final state", async () => {
    const endpoint = client(streaming.id);
    const { id } = await endpoint.run({ input: { values: ["a", 1, null, { b: [] }], count: 300 } });
    const found = await collect(endpoint.stream(id));
    const numbers = Array.from({ length: 300 }, (_, number) => ({ number, padding: "" }));
    expect(found.map(({ output }) => output)).toEqual(["a", 1, null, { b: [] }, ...numbers]);
    expect(found.map(({ metrics }) => metrics.stream_index)).toEqual(Array.from({ length: 304 }, (_, index) => index));
    expect(await endpoint.status(id)).toMatchObject({ status: "COMPLETED" });
  });

  it("is held while there is nothing to stream, even if it polls without a pause", async () => {
    const endpoint = client(streaming.id);
    const { id } = await endpoint.run({ input: { values: ["a", "b", "c"], pause: 1.5 } });
    const { result, calls } = await callsOf(() => collect(endpoint.stream(id)));
    expect(result.map(({ output }) => output)).toEqual(["a", "b", "c"]);
    expect(calls.length).toBeLessThanOrEqual(20);
  });

  it("gets a finished stream that is larger than one reply", async () => {
    const endpoint = client(streaming.id);
    const id = await submit(server, streaming.id, { count: 12, padding: 900 * 1024 });
    expect((await settled(server, streaming.id, id)).status).toBe("COMPLETED");
    const { result, calls } = await callsOf(() => collect(endpoint.stream(id)));
    expect(result.map(({ output }) => output.number)).toEqual(Array.from({ length: 12 }, (_, number) => number));
    expect(calls.length).toBeGreaterThan(1);
    expect(await collect(endpoint.stream(id))).toEqual([]);
  });

  it("gets a chunk over the limit in pieces that join to the whole", async () => {
    const endpoint = client(streaming.id);
    const long = "äbc€".repeat(400_000);
    const { id } = await endpoint.run({ input: { values: [long, "end"] } }, 10_000);
    const found = await collect(endpoint.stream(id));
    expect(found.at(-1).output).toBe("end");
    const pieces = found.slice(0, -1);
    expect(pieces.length).toBeGreaterThanOrEqual(3);
    expect(pieces.map(({ output }) => output).join("")).toBe(long);
    for (const { output } of pieces) expect(Buffer.byteLength(output)).toBeLessThanOrEqual(2 ** 20);
    expect(new Set(pieces.map(({ metrics }) => metrics.parts))).toEqual(new Set([pieces.length]));
    expect(pieces.every(({ metrics }) => Number.isInteger(metrics.part))).toBe(true);
  });

  it("sees the chunks of a job that failed, and then its end", async () => {
    const endpoint = client(streaming.id);
    const { id } = await endpoint.run({ input: { values: ["a", "b"], fail: "half way" } });
    expect((await collect(endpoint.stream(id))).map(({ output }) => output)).toEqual(["a", "b"]);
    const status: Said = await endpoint.status(id);
    expect(status.status).toBe("FAILED");
    expect(status.error).toContain("half way");
  });

  it("cancels a waiting job, and a running job", async () => {
    const waiting = await client(idle).run({ input: {} });
    expect(await client(idle).cancel(waiting.id)).toMatchObject({ id: waiting.id, status: "CANCELLED" });
    expect(await client(idle).status(waiting.id)).toMatchObject({ status: "CANCELLED", completed: true });
    const endpoint = client(awaiting.id);
    const running = await endpoint.run({ input: { seconds: 60 } });
    await reached(server, awaiting.id, running.id, "IN_PROGRESS");
    const { result, calls } = await callsOf(() => endpoint.cancel(running.id));
    expect(result).toMatchObject({ id: running.id, status: "CANCELLED" });
    expect(calls.map(({ init }) => init.body)).toEqual(["{}"]);
    expect(await endpoint.status(running.id)).toMatchObject({ status: "CANCELLED", completed: true, succeeded: false });
    expect(await endpoint.cancel(running.id)).toMatchObject({ id: running.id, status: "CANCELLED" });
  });

  it("reads the health of an endpoint", async () => {
    const health: Said = await client(plain.id).health();
    expect(Object.keys(health.jobs)).toEqual(
      expect.arrayContaining(["completed", "failed", "inProgress", "inQueue", "retried"]),
    );
    expect(Object.keys(health.workers)).toEqual(
      expect.arrayContaining(["idle", "initializing", "paused", "ready", "running", "throttled", "unhealthy"]),
    );
    for (const count of [...Object.values(health.jobs), ...Object.values(health.workers)]) {
      expect(Number.isInteger(count)).toBe(true);
    }
    expect(health.workers.ready).toBe(health.workers.idle + health.workers.running);
  });

  it("throws a 401 for a wrong key, a 404 for an unknown endpoint or job, a 400 for a bad job", async () => {
    const refused = (status: number) => expect.objectContaining({ response: expect.objectContaining({ status }) });
    await expect(client(plain.id, "nobody's").health()).rejects.toEqual(refused(401));
    await expect(client("nosuchendpoint").run({ input: {} })).rejects.toEqual(refused(404));
    await expect(client(plain.id).status("00000000-0000-7000-8000-000000000000-u1")).rejects.toEqual(refused(404));
    await expect(client(plain.id).run({ input: "text" })).rejects.toEqual(refused(400));
    await expect(client(plain.id).run({ input: {}, policy: { executionTimeout: 3_000 } })).rejects.toEqual(
      refused(400),
    );
  });
});
