import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../../harness.js";
import { makeHeld, makePuppets } from "../puppet.js";
import { healthOf, statusOf, submit, textCall, unknownJob } from "../wire.js";

const MB = 2 ** 20;

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", SECRET_OF_THE_HOST: "not for workers" });
});
afterAll(() => server?.end());

describe.concurrent("a result", () => {
  it("is COMPLETED without output if that is null or absent", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    for (const text of ['{"output": null}', "{}"]) {
      const job = await submit(server, endpoint);
      await worker.take();
      expect((await worker.done(job, text)).status).toBe(200);
      const body = await statusOf(server, endpoint, job);
      expect(body.status).toBe("COMPLETED");
      expect(body).not.toHaveProperty("output");
      expect(body).not.toHaveProperty("error");
    }
  });

  it("keeps empty and falsy outputs", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    for (const output of [false, 0, "", [], {}]) {
      const job = await submit(server, endpoint);
      await worker.take();
      await worker.done(job, { output });
      expect(await statusOf(server, endpoint, job)).toMatchObject({ status: "COMPLETED", output });
    }
  });

  it("is FAILED if it has an error of any JSON type, and keeps the output beside it", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    for (const [said, error] of [
      ['{"error":"out of memory","output":{"partial":1}}', "out of memory"],
      ['{"error":{"kind":"oom","at":[1, 2]},"output":{"partial":1}}', '{"kind":"oom","at":[1, 2]}'],
      ['{"error":12345678901234567890,"output":{"partial":1}}', "12345678901234567890"],
      ['{"error":false,"output":{"partial":1}}', "false"],
    ] as const) {
      const job = await submit(server, endpoint);
      await worker.take();
      expect((await worker.done(job, said)).status).toBe(200);
      const body = await statusOf(server, endpoint, job);
      expect(body).toMatchObject({ status: "FAILED", error, output: { partial: 1 } });
    }
    const empty = await submit(server, endpoint);
    await worker.take();
    await worker.done(empty, { error: "" });
    expect(await statusOf(server, endpoint, empty)).toMatchObject({
      status: "FAILED",
      error: expect.stringMatching(/\S/),
    });
    const none = await submit(server, endpoint);
    await worker.take();
    await worker.done(none, { error: null, output: 1 });
    expect(await statusOf(server, endpoint, none)).toMatchObject({ status: "COMPLETED", output: 1 });
  });

  it("with NaN in it is FAILED, naming the position", async (test) => {
    for (const [text, position] of [
      ['{"output": {"loss": NaN}}', 20],
      ['{"output": [1, Infinity]}', 15],
    ] as const) {
      const { worker, job, status } = await makeHeld(test, server);
      expect((await worker.done(job, text)).status).toBe(200);
      const body = await status();
      expect(body.status).toBe("FAILED");
      const numbers = [...body.error.matchAll(/\d+/g)].map((match) => Number(match[0]));
      expect(
        numbers.some((number) => number === position || number === position + 1),
        body.error,
      ).toBe(true);
      expect(body).not.toHaveProperty("output");
    }
  });

  it("that is malformed is answered 200, and FAILED", async (test) => {
    for (const body of ["", "not json", '{"output":', "output=1"]) {
      const { worker, job, status } = await makeHeld(test, server);
      expect((await worker.done(job, body)).status).toBe(200);
      expect(await status()).toMatchObject({ status: "FAILED", error: expect.stringMatching(/\S/) });
    }
    const { worker, job, status } = await makeHeld(test, server);
    const bytes = Buffer.concat([Buffer.from('{"output":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
    expect((await worker.call("POST", worker.doneUrl(job), new Uint8Array(bytes))).status).toBe(200);
    expect((await status()).status).toBe("FAILED");
  });

  it("over the limit is answered 200, and its job is FAILED with that reason", async (test) => {
    const { worker, job, status } = await makeHeld(test, server);
    const answer = await worker.done(job, `{"output":"${"x".repeat(20 * MB)}"}`);
    expect(answer.status).toBe(200);
    const body = await status();
    expect(body.status).toBe("FAILED");
    expect(body.error).toMatch(/20 ?MB|large|limit/i);
  });

  it("over the hard limit of 100 MB is answered 200, and its job is FAILED with that reason", async (test) => {
    const { worker, job, status } = await makeHeld(test, server);
    const answer = await worker.call("POST", worker.doneUrl(job), new Uint8Array(101 * MB).fill(0x20));
    expect(answer.status).toBe(200);
    expect(await status()).toMatchObject({ status: "FAILED", error: expect.stringMatching(/larger than the limit/) });
  });

  it("just under the limit is kept", async (test) => {
    const { worker, job, endpoint } = await makeHeld(test, server);
    const output = "x".repeat(20 * MB - 100);
    expect((await worker.done(job, { output })).status).toBe(200);
    const shown = await textCall(server, "GET", `/v2/${endpoint}/status/${job}`);
    expect(shown.text.includes(output)).toBe(true);
  });

  it("counts once: later reports change nothing", async (test) => {
    const { worker, job, status, endpoint } = await makeHeld(test, server);
    await worker.done(job, { output: "first" });
    const settled = await status();
    for (const word of [
      { output: "first" },
      { output: "second" },
      { error: "late" },
      { status: "IN_PROGRESS", output: "progress" },
      "not json",
    ]) {
      expect((await worker.done(job, word)).status).toBe(200);
    }
    expect(await status()).toEqual(settled);
    expect((await healthOf(server, endpoint)).jobs).toMatchObject({ completed: 1, failed: 0, inProgress: 0 });
  });

  it("from a worker that does not hold the job is dropped", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server, { workersMin: 2, workersMax: 2 });
    const [holder, other] = [await puppet(0), await puppet(1)];
    const job = await submit(server, endpoint);
    await holder.take();
    expect((await other.done(job, { output: "stolen" })).status).toBe(200);
    expect((await other.chunk(job, { output: "stolen" })).status).toBe(200);
    expect((await other.done(job, { status: "IN_PROGRESS", output: "stolen" })).status).toBe(200);
    const body = await statusOf(server, endpoint, job);
    expect(body).toMatchObject({ status: "IN_PROGRESS", workerId: holder.id });
    expect(body).not.toHaveProperty("output");
    await holder.done(job, { output: "mine" });
    expect(await statusOf(server, endpoint, job)).toMatchObject({ status: "COMPLETED", output: "mine" });
    expect((await call(server, "GET", `/v2/${endpoint}/stream/${job}`)).body).toEqual([]);
  });

  it("for an unknown or waiting job is answered 200", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const waiting = await submit(server, endpoint);
    for (const job of [unknownJob, "nonsense", waiting]) {
      expect((await worker.done(job, { output: 1 })).status).toBe(200);
      expect((await worker.chunk(job, { output: 1 })).status).toBe(200);
    }
    expect((await statusOf(server, endpoint, waiting)).status).toBe("IN_QUEUE");
  });

  it("belongs to the job in its URL, whatever X-Request-ID says", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const [one, two] = [await submit(server, endpoint), await submit(server, endpoint)];
    await worker.takeBatch(2);
    const headers = { "x-request-id": two };
    expect((await worker.call("POST", worker.doneUrl(one), '{"output":1}', { headers })).status).toBe(200);
    expect((await statusOf(server, endpoint, one)).status).toBe("COMPLETED");
    expect((await statusOf(server, endpoint, two)).status).toBe("IN_PROGRESS");
  });

  it("of many jobs may come in one call, and is judged job by job", async (test) => {
    const { id: endpoint, puppet } = await makePuppets(test, server);
    const worker = await puppet();
    const jobs: string[] = [];
    for (let n = 0; n < 4; n++) jobs.push(await submit(server, endpoint));
    const [good, bad, quiet, running] = jobs as [string, string, string, string];
    await worker.takeBatch(4);
    const answer = await worker.doneBatch([
      { id: good, output: { n: 1 } },
      { id: unknownJob, output: 1 },
      { id: bad, error: "broken" },
      { id: quiet },
      7,
    ]);
    expect(answer.status).toBe(200);
    expect(await statusOf(server, endpoint, good)).toMatchObject({ status: "COMPLETED", output: { n: 1 } });
    expect(await statusOf(server, endpoint, bad)).toMatchObject({ status: "FAILED", error: "broken" });
    expect((await statusOf(server, endpoint, quiet)).status).toBe("COMPLETED");
    expect((await statusOf(server, endpoint, running)).status).toBe("IN_PROGRESS");
    for (const body of ["not json", "{}", "[]", "null"]) expect((await worker.doneBatch(body)).status).toBe(200);
    expect((await statusOf(server, endpoint, running)).status).toBe("IN_PROGRESS");
  });

  it.for([
    ["small", 1],
    ["large", "x".repeat(400_000)],
  ] as const)("with stopPod brings a fresh worker: a %s result", async ([, output], test) => {
    const { endpoint, worker, job, puppet, status } = await makeHeld(test, server);
    expect((await worker.done(job, { output, stopPod: true })).status).toBe(200);
    expect(await status()).toMatchObject({ status: "COMPLETED", output });
    const next = await submit(server, endpoint);
    const fresh = await puppet(1);
    expect(fresh.id).not.toBe(worker.id);
    await until(() => !worker.alive());
    expect((await fresh.take()).body.id).toBe(next);
  });
});
