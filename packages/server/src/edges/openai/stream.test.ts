import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { loseJob } from "../../operations/jobs/change-job.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
});
beforeEach(async () => {
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

const path = () => `/v2/${endpoint.id}/openai/v1/chat/completions`;
const done = "data: [DONE]\n\n";

/** A client that reads a stream as it arrives. */
class Reader {
  readonly #leaving = new AbortController();
  readonly #reply: Promise<Response>;
  text = "";
  isOver = false;

  constructor(headers: Record<string, string> = {}) {
    this.#reply = fetch(http.url + path(), {
      method: "POST",
      headers: { authorization: `Bearer ${scene.key}`, ...headers },
      body: '{"stream": true}',
      signal: this.#leaving.signal,
    });
    void this.#read();
  }

  async #read(): Promise<void> {
    try {
      const decoder = new TextDecoder();
      for await (const part of (await this.#reply).body ?? []) this.text += decoder.decode(part, { stream: true });
    } catch {
      // The client left or the stream broke: the text shows how far it got.
    }
    this.isOver = true;
  }

  leave = () => this.#leaving.abort();
  reply = () => this.#reply;
  says = (text: string) => scene.until(() => this.text === text);
  over = () => scene.until(() => this.isOver);
}

/** A reader whose job was taken. */
async function streaming(headers?: Record<string, string>) {
  const reader = new Reader(headers);
  await scene.until(async () => (await scene.health(endpoint)).waiting > 0);
  const [job] = await scene.take(worker);
  const say = (output: unknown) => scene.chunk(worker, job!.id, { output });
  return { reader, id: job!.id, say, end: (word: unknown = { output: [] }) => scene.done(worker, job!.id, word) };
}

/** Takes the job from its worker, as if the worker were lost. */
async function lose(): Promise<void> {
  const [held] = await scene.stores.reader.heldBy(worker.row.no);
  await loseJob(scene.parts, held!, "its worker was lost", false);
}

const lastError = (reader: Reader) => JSON.parse(reader.text.split("\n\n").at(-2)!.replace("data: ", "")).error;

describe("A stream", () => {
  it("of raw text sends each piece as it comes, without waiting for others, and ends with the worker's own ending", async () => {
    const { reader, say, end } = await streaming();
    await say('data: {"n":1}\n\n');
    await reader.says('data: {"n":1}\n\n'); // the clock stands still
    await say('data: {"n":2}\n\ndata: ');
    await reader.says('data: {"n":1}\n\ndata: {"n":2}\n\n');
    await say("[DONE]\n\n");
    await end();
    await reader.over();
    expect(reader.text).toBe(`data: {"n":1}\n\ndata: {"n":2}\n\n${done}`);
    const { status, headers } = await reader.reply();
    expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
    expect(headers.get("x-request-id")).toMatch(/./);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("of objects and lists of objects sends events, and [DONE]", async () => {
    const { reader, say, end } = await streaming();
    await say({ n: 1 });
    await say([{ n: 2 }, { n: 3 }]);
    await end({ output: [{ n: 1 }, [{ n: 2 }, { n: 3 }]] });
    await reader.over();
    expect(reader.text).toBe(`data: {"n":1}\n\ndata: {"n":2}\n\ndata: {"n":3}\n\n${done}`);
  });

  it.each([
    { it: "an object", output: { n: 1 }, text: `data: {"n":1}\n\n${done}` },
    { it: "a list", output: [{ n: 1 }, { n: 2 }], text: `data: {"n":1}\n\ndata: {"n":2}\n\n${done}` },
    { it: "raw text", output: `data: 1\n\n${done}`, text: `data: 1\n\n${done}` },
    { it: "nothing", output: null, text: done },
    {
      it: "a chat completion, as the chunk that clients read",
      output: {
        object: "chat.completion",
        choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
      },
      text: `data: {"object":"chat.completion.chunk","choices":[{"index":0,"finish_reason":"stop","delta":{"role":"assistant","content":"Hi"}}]}\n\n${done}`,
    },
  ])("of a handler that does not stream sends $it", async ({ output, text }) => {
    const { reader, end } = await streaming();
    await end({ output });
    await reader.over();
    expect(reader.text).toBe(text);
  });

  it("consumes nothing: /stream still has all chunks", async () => {
    const { reader, id, say, end } = await streaming();
    await say({ n: 1 });
    await end();
    await reader.over();
    const { json } = await http.get(`/v2/${endpoint.id}/stream/${id}`);
    expect(json).toEqual([{ output: { n: 1 }, metrics: { stream_index: 0 } }]);
  });

  it("is kept alive by comments while nothing comes, and can still start over", async () => {
    const { reader, say, end } = await streaming();
    await scene.advance(limits.sseKeepAliveMs);
    await reader.says(": keep-alive\n\n");
    await lose();
    await scene.take(worker);
    await say({ n: 1 });
    await end();
    await reader.over();
    expect(reader.text).toBe(`: keep-alive\n\ndata: {"n":1}\n\n${done}`);
  });

  it("is read by several under one Idempotency-Key, each from its beginning", async () => {
    const headers = { "idempotency-key": "both" };
    const { reader, say, end } = await streaming(headers);
    await say({ n: 1 });
    await reader.says('data: {"n":1}\n\n');
    const other = new Reader(headers);
    await other.says('data: {"n":1}\n\n');
    reader.leave();
    await reader.over();
    await say({ n: 2 });
    await end();
    await other.over();
    expect(other.text).toBe(`data: {"n":1}\n\ndata: {"n":2}\n\n${done}`);
  });
});

describe("A job that fails", () => {
  const dict = "{'object': 'error', 'message': 'too long', 'type': 'BadRequestError', 'param': None, 'code': 400}";
  const error = { message: "too long", type: "BadRequestError", param: null, code: 400 };

  it("before any output is answered with its status", async () => {
    const { reader, end } = await streaming();
    await end({ error: dict });
    const reply = await reader.reply();
    await reader.over();
    expect([reply.status, JSON.parse(reader.text)]).toEqual([400, { error }]);
  });

  it.each([
    { it: "", headers: undefined },
    { it: ", under an Idempotency-Key too", headers: { "idempotency-key": "an-error" } },
  ])("in its first chunk is answered with its status, and does not go on$it", async ({ headers }) => {
    const { reader, id, say } = await streaming(headers);
    await say({ object: "error", ...error });
    const reply = await reader.reply();
    await reader.over();
    expect([reply.status, JSON.parse(reader.text)]).toEqual([400, { error }]);
    await scene.until(async () => (await scene.state(endpoint, id)) === "CANCELLED");
  });

  it.each([
    { it: "after whole events", said: 'data: {"n":1}\n\n' },
    { it: "in the middle of an event, which is left out", said: 'data: {"n":1}\n\ndata: {"n"' },
  ])("$it ends in an error event", async ({ said }) => {
    const { reader, say, end } = await streaming();
    await say(said);
    await reader.says('data: {"n":1}\n\n');
    await end({ error: dict });
    await reader.over();
    expect(reader.text).toBe(`data: {"n":1}\n\ndata: ${JSON.stringify({ error })}\n\n`);
  });

  it("after a comment ends in an error event too", async () => {
    const { reader, end } = await streaming();
    await scene.advance(limits.sseKeepAliveMs);
    await reader.says(": keep-alive\n\n");
    await end({ error: dict });
    await reader.over();
    expect(reader.text).toBe(`: keep-alive\n\ndata: ${JSON.stringify({ error })}\n\n`);
  });
});

describe("A worker that is lost", () => {
  it("before any of its text was sent is replaced without the client noticing", async () => {
    const { reader, say, end } = await streaming();
    await say('data: {"of the fi');
    await scene.settle();
    await lose();
    await scene.take(worker);
    await say({ n: 1 });
    await end();
    await reader.over();
    expect(reader.text).toBe(`data: {"n":1}\n\n${done}`);
  });

  it("in the middle of an answer ends the answer with an error, and cancels the job", async () => {
    const { reader, id, say } = await streaming();
    await say({ n: 1 });
    await reader.says('data: {"n":1}\n\n');
    await lose();
    await reader.over();
    expect(lastError(reader)).toMatchObject({ type: "server_error", code: "WORKER_LOST" });
    await scene.until(async () => (await scene.state(endpoint, id)) === "CANCELLED");
  });

  it("is noticed even if the next worker has sent as much already", async () => {
    const { reader, id, say } = await streaming({ "idempotency-key": "kept" });
    await say({ n: 1 });
    await reader.says('data: {"n":1}\n\n');
    const [held] = await scene.stores.reader.heldBy(worker.row.no);
    // No notification is sent while all of this happens.
    await scene.stores.jobs.change(held!, { by: "giveBack", excused: true }, scene.clock.now());
    await scene.stores.jobs.take(endpoint.no, [{ workerNo: worker.row.no, count: 1 }], scene.clock.now());
    const again = [{ output: '{"n":"other"}' }, { output: '{"n":"than before"}' }];
    await scene.stores.chunks.append({ endpointNo: endpoint.no, jobId: id, workerNo: worker.row.no, chunks: again });
    scene.parts.bell.ring(`job:${id}`);
    await reader.over();
    expect(reader.text).not.toContain("than before");
    expect(lastError(reader)).toMatchObject({ code: "WORKER_LOST" });
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS"); // a client can request it again under its key
  });
});

/** A client that reads none of a long answer. */
async function stalled(of: Scene, web: Http, place: Endpoint, by: LiveWorker) {
  const socket = connect(web.port, "127.0.0.1").pause();
  const body = '{"stream": true}';
  const line = `POST /v2/${place.id}/openai/v1/chat/completions HTTP/1.1`;
  const head = [line, "host: x", `authorization: Bearer ${of.key}`, `content-length: ${body.length}`];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  await of.until(async () => (await of.health(place)).waiting > 0);
  const [job] = await of.take(by);
  const output = `data: ${"x".repeat(limits.chunkBytesMax / 2)}\n\n`;
  for (let n = 0; n < 60; n++) await of.chunk(by, job!.id, { output });
  return { socket, id: job!.id };
}

describe("A reader that disconnects", () => {
  it("in the middle cancels its job", async () => {
    const { reader, id, say } = await streaming();
    await say({ n: 1 });
    await reader.says('data: {"n":1}\n\n');
    reader.leave();
    await scene.until(async () => (await scene.state(endpoint, id)) === "CANCELLED");
  });

  it("before any output cancels its job", async () => {
    const { reader, id } = await streaming();
    reader.leave();
    await scene.until(async () => (await scene.state(endpoint, id)) === "CANCELLED");
  });

  it("at the worker's [DONE], before its final result, changes nothing", async () => {
    const { reader, id, say, end } = await streaming();
    await say(`data: {"n":1}\n\n${done}`);
    await reader.says(`data: {"n":1}\n\n${done}`);
    await scene.settle();
    const { sleeping } = scene.clock;
    reader.leave();
    await scene.until(() => scene.clock.sleeping < sleeping);
    await scene.settle();
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await end();
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
  });

  it("by reading nothing is disconnected, and unread text was not held in memory for it", async () => {
    let readBytes = 0;
    const { read } = scene.parts.chunks;
    const counted: typeof read = async (...args) => {
      const chunks = await read(...args);
      for (const { output } of chunks) readBytes += output.length;
      return chunks;
    };
    const slow = await openHttp(scene, { chunks: { ...scene.parts.chunks, read: counted } });
    const { socket, id } = await stalled(scene, slow, endpoint, worker);
    await scene.settle();
    expect(readBytes).toBeLessThan((60 * limits.chunkBytesMax) / 3);
    await scene.advance(limits.readerStallMs - 1);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    await scene.advance(1);
    await scene.until(async () => (await scene.state(endpoint, id)) === "CANCELLED");
    socket.destroy();
    await slow.close();
  });
});

it("A reader that reads nothing does not delay a server's stop", async () => {
  const own = await Scene.open();
  const web = await openHttp(own);
  const place = await own.endpoint();
  const { socket } = await stalled(own, web, place, await own.worker(place));
  const connections = () => new Promise<number>((done) => web.app.server.getConnections((_, count) => done(count)));
  await own.settle();
  expect(await connections()).toBe(1);
  own.draining.abort(); // the clock stands still
  await own.until(async () => (await connections()) === 0);
  socket.destroy();
  await web.close();
  await own.close();
});
