import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { done, endpoint, http, lose, openStreams, Reader, scene, streaming, worker } from "./stream-fixture.js";

openStreams();

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
  await own.settle();
  expect(web.connections()).toBe(1);
  own.draining.abort(); // the clock stands still
  await own.until(() => web.connections() === 0);
  socket.destroy();
  await web.close();
  await own.close();
});
