import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { done, endpoint, lose, openStreams, type Reader, scene, streaming, worker } from "./stream-fixture.js";

openStreams();

const lastError = (reader: Reader) => JSON.parse(reader.text.split("\n\n").at(-2)!.replace("data: ", "")).error;

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
    await scene.stores.jobs.change({ job: held!, change: { by: "giveBack", excused: true }, now: scene.clock.now() });
    await scene.stores.jobs.take({
      endpointNo: endpoint.no,
      asks: [{ workerNo: worker.row.no, count: 1 }],
      now: scene.clock.now(),
    });
    const again = [{ output: '{"n":"other"}' }, { output: '{"n":"than before"}' }];
    await scene.stores.chunks.append({ endpointNo: endpoint.no, jobId: id, workerNo: worker.row.no, chunks: again });
    scene.parts.bell.ring(`job:${id}`);
    await reader.over();
    expect(reader.text).not.toContain("than before");
    expect(lastError(reader)).toMatchObject({ code: "WORKER_LOST" });
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS"); // a client can request it again under its key
  });
});
