import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { type Ending, makeQueue, makeRunning } from "./handlers.js";
import { makeRead, outputs } from "./stream-reader.js";
import { type Body, isHeld, statusOf, submit } from "./wire.js";
import { within } from "./within.js";

const MB = 2 ** 20;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.end());

const indexes = (chunks: Body[]) => chunks.map((chunk) => chunk.metrics.stream_index);

describe.concurrent("/stream", () => {
  it("is the array of chunks, with the worker's metrics and an index from 0", async (test) => {
    const { worker, job, chunks } = await makeRead(test, server);
    const metrics = { running: 1, scenario: "batch", avg_gen_throughput: 0.5 };
    await worker.chunk(job, { output: { text: ["a"] }, metrics });
    await worker.chunk(job, { output: "b" });
    expect(await chunks()).toEqual([
      { output: { text: ["a"] }, metrics: { ...metrics, stream_index: 0 } },
      { output: "b", metrics: { stream_index: 1 } },
    ]);
  });

  it("is an envelope with the status at the public clients' URL", async (test) => {
    const { worker, job, envelope } = await makeRead(test, server);
    expect(await envelope("?wait=0")).toEqual({ status: "IN_PROGRESS", stream: [] });
    await worker.chunk(job, { output: "a" });
    const chunk = { output: "a", metrics: { stream_index: 0 } };
    expect(await envelope()).toEqual({ status: "IN_PROGRESS", stream: [chunk] });
    await worker.done(job, { output: [] }, true);
    expect(await envelope()).toEqual({ status: "COMPLETED", stream: [] });
  });

  it("hands each chunk out once, in order", async (test) => {
    const { worker, job, chunks } = await makeRead(test, server);
    for (const output of ["a", "a", "b"]) await worker.chunk(job, { output });
    const first = await chunks();
    expect([outputs(first), indexes(first)]).toEqual([
      ["a", "a", "b"],
      [0, 1, 2],
    ]);
    await worker.chunk(job, { output: "c" });
    const next = await chunks();
    expect([outputs(next), indexes(next)]).toEqual([["c"], [3]]);
    await worker.done(job, {}, true);
    expect(await chunks()).toEqual([]);
  });

  it("hands chunks out after the end as well as before", async (test) => {
    const { worker, job, endpoint, envelope } = await makeRead(test, server);
    await worker.chunk(job, { output: 1 });
    await worker.done(job, { output: ["whole"] }, true);
    const reply = await envelope();
    expect([reply.status, outputs(reply.stream)]).toEqual(["COMPLETED", [1]]);
    expect((await statusOf(server, endpoint, job)).output).toEqual(["whole"]);
  });

  it("says IN_PROGRESS while chunks are left, and gives at most 8 MB at a time", async (test) => {
    const { worker, job, envelope } = await makeRead(test, server);
    const count = 20;
    const output = "x".repeat(MB - 100);
    for (let n = 0; n < count; n++) await worker.chunk(job, { output });
    await worker.done(job, { output: [] }, true);
    const seen: number[] = [];
    for (let replies = 1; ; replies++) {
      const reply = await envelope();
      expect(reply.stream.length).toBeGreaterThan(0);
      expect(JSON.stringify(reply.stream).length).toBeLessThanOrEqual(8.1 * MB);
      seen.push(...indexes(reply.stream));
      expect(reply.status).toBe(seen.length === count ? "COMPLETED" : "IN_PROGRESS");
      if (seen.length === count) break;
      expect(replies).toBeLessThan(10);
    }
    expect(seen).toEqual(Array.from({ length: count }, (_, n) => n));
    expect(await envelope()).toEqual({ status: "COMPLETED", stream: [] });
  });

  it("is held for at most a second while there is nothing to send", async (test) => {
    const { chunks } = await makeRead(test, server);
    const begun = performance.now();
    expect(await within(test, server, 3_000, () => chunks())).toEqual([]);
    expect(performance.now() - begun).toBeGreaterThan(900);
  });

  it("is held as long as `wait` says, and answers as soon as there is a chunk", async (test) => {
    const { worker, job, endpoint, chunks } = await makeRead(test, server);
    expect(await within(test, server, 800, () => chunks("?wait=0"))).toEqual([]);
    const held = chunks("?wait=30000");
    const clamped = chunks("?wait=99999999");
    expect(await isHeld(server, endpoint, Promise.race([held, clamped]))).toBe(true);
    expect(await chunks()).toEqual([]); // they are held for longer than a read without `wait`
    await worker.chunk(job, { output: "a" });
    await worker.chunk(job, { output: "b" });
    const first = await Promise.race([held, clamped]);
    expect(first.length).toBeGreaterThan(0);
    await worker.done(job, {}, true);
    const both = [...(await held), ...(await clamped)];
    expect(outputs(both).sort()).toEqual(["a", "b"]);
  });

  it("answers at once when the job ends", async (test) => {
    const { worker, job, envelope } = await makeRead(test, server);
    const held = envelope("?wait=30000");
    await worker.done(job, { error: "broken" }, true);
    expect(await held).toEqual({ status: "FAILED", stream: [] });
  });

  it("does not lose the chunks of a reader that disconnected", async (test) => {
    const { worker, job, endpoint, chunks } = await makeRead(test, server);
    const hangUp = new AbortController();
    const headers = { authorization: server.key };
    const url = `${server.url}/v2/${endpoint}/stream/${job}?wait=30000`;
    const held = fetch(url, { headers, signal: hangUp.signal }).catch((error) => error.name);
    await chunks("?wait=0");
    hangUp.abort();
    expect(await held).toBe("AbortError");
    await chunks("?wait=0"); // by now the server has seen the socket close
    await worker.chunk(job, { output: "kept" });
    expect(outputs(await chunks())).toEqual(["kept"]);
  });

  it("drops chunks that a worker sends after the end", async (test) => {
    const { worker, job, chunks } = await makeRead(test, server);
    await worker.chunk(job, { output: "in time" });
    await worker.done(job, {}, true);
    expect((await worker.chunk(job, { output: "late" })).status).toBe(200);
    expect(outputs(await chunks())).toEqual(["in time"]);
    expect(await chunks()).toEqual([]);
  });

  it("begins again at 0 when the job starts over", async (test) => {
    const { worker, job, endpoint, chunks } = await makeRead(test, server);
    await worker.chunk(job, { output: "first start" });
    const again = await worker.take(); // it reports no jobs, so its job is given back and handed out again
    expect(again.body.id).toBe(job);
    await worker.chunk(job, { output: "second start" });
    expect(await chunks()).toEqual([{ output: "second start", metrics: { stream_index: 0 } }]);
    expect((await statusOf(server, endpoint, job)).retries).toBe(1);
  });

  it("keeps the text of a chunk unchanged", async (test) => {
    const { worker, job, endpoint } = await makeRead(test, server);
    const text = '{"n":12345678901234567890,"huge":1e400,"a":1,"a":2}';
    await worker.chunk(job, `{"output":${text}}`);
    const reply = await fetch(`${server.url}/v2/${endpoint}/stream/${job}`, { headers: { authorization: server.key } });
    expect(await reply.text()).toContain(`"output":${text}`);
  });

  it("is 404 for an unknown job, and empty for a waiting job", async (test) => {
    const endpoint = await makeQueue(test, server);
    const unknown = "01890a5d-ac96-774b-bcce-b302099a8057-u1";
    for (const prefix of ["/v2", "/sdk/v2"]) {
      expect((await call(server, "GET", `${prefix}/${endpoint}/stream/${unknown}`)).status).toBe(404);
    }
    const job = await submit(server, endpoint);
    const reply = await call(server, "POST", `/sdk/v2/${endpoint}/stream/${job}?wait=0`);
    expect([reply.status, reply.body]).toEqual([200, { status: "IN_QUEUE", stream: [] }]);
  });

  it("carries what a generator handler yields", async (test) => {
    const source = "export default async function* (input) { for (const word of input.words) yield word; }";
    const endpoint = await makeRunning(test, server, {}, source);
    const job = await submit(server, endpoint, { words: ["one", "two", "three"] });
    const seen: unknown[] = [];
    await until(async () => {
      const reply = await call(server, "GET", `/sdk/v2/${endpoint}/stream/${job}`);
      seen.push(...outputs(reply.body.stream));
      return reply.body.status === "COMPLETED";
    });
    expect(seen).toEqual(["one", "two", "three"]);
  });
});

describe.concurrent("a chunk over 1 MB", () => {
  async function pieces(test: Ending, output: unknown): Promise<Body[]> {
    const { worker, job, chunks } = await makeRead(test, server);
    expect((await worker.chunk(job, { output, metrics: { running: 1 } })).status).toBe(200);
    const found = await chunks();
    const parts = found[0]?.metrics.parts;
    expect(parts).toBeGreaterThan(1);
    expect(found).toHaveLength(parts);
    const first = found[0]?.metrics.part;
    for (const [n, { output: piece, metrics }] of found.entries()) {
      expect(metrics).toMatchObject({ part: first + n, parts, running: 1 });
      expect(metrics.stream_index).toBeTypeOf("number");
      expect(Buffer.byteLength(JSON.stringify(piece))).toBeLessThanOrEqual(MB);
    }
    return found;
  }

  it("is split between the characters of a string", async (test) => {
    const output = "é€😀x".repeat(300_000);
    const found = outputs(await pieces(test, output));
    expect(found.join("") === output).toBe(true);
    for (const piece of found) expect(piece.isWellFormed?.() ?? !/\ufffd/.test(piece)).toBe(true);
  });

  it("is split between the elements of an array", async (test) => {
    const output = Array.from({ length: 30_000 }, (_, n) => ({ n, text: "é".repeat(50) }));
    const found = outputs(await pieces(test, output));
    for (const piece of found) expect(Array.isArray(piece)).toBe(true);
    expect(found.flat()).toEqual(output);
  });

  it("is split into pieces of its JSON text otherwise", async (test) => {
    const output = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`key ${n}`, "é".repeat(50)]));
    const found = outputs(await pieces(test, output));
    for (const piece of found) expect(piece).toBeTypeOf("string");
    expect(JSON.parse(found.join(""))).toEqual(output);
  });

  it("stays whole at exactly 1 MB", async (test) => {
    const { worker, job, chunks } = await makeRead(test, server);
    const output = "x".repeat(MB - 2); // two quotes around it
    await worker.chunk(job, { output });
    const found = await chunks();
    expect(found).toHaveLength(1);
    expect(found[0].output === output).toBe(true);
    expect(found[0].metrics).toEqual({ stream_index: 0 });
  });
});
