import { request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../../domain/endpoints/endpoint.js";
import { type Pieced, stringOf, wholeOf } from "../../../json/json.js";
import { limits } from "../../../limits/index.js";
import type { LiveWorker } from "../../../memory/registry.js";
import { wholeJob } from "../../../operations/jobs/lend-status.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { secretOf } from "../../../testing/scene-acts-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";

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

interface Sending {
  readonly key: string;
  readonly body: Buffer;
  /** True if the body has no Content-Length. */
  readonly chunked: boolean;
  readonly headers?: Record<string, string>;
}

async function send(path: string, { key, body, chunked, headers }: Sending) {
  const framing = chunked ? { "transfer-encoding": "chunked" } : { "content-length": body.length };
  const reply = await new Promise<import("node:http").IncomingMessage>((resolve, reject) => {
    const all = { authorization: `Bearer ${key}`, ...framing, ...headers };
    const sent = request(`${http.url}/v2/${endpoint.id}/${path}`, { method: "POST", headers: all, agent: false });
    sent.once("response", resolve).once("error", reject);
    for (let at = 0; at < body.length; at += 100_000) sent.write(body.subarray(at, at + 100_000));
    sent.end();
  });
  return { status: reply.statusCode, json: JSON.parse(await text(reply)) };
}
const run = (body: Buffer, chunked: boolean, headers = {}) => send("run", { key: scene.key, body, chunked, headers });
const done = (id: string, body: Buffer, chunked: boolean) =>
  send(`job-done/${worker.row.id}/${id}`, { key: secretOf(worker), body, chunked });

const sizes = [10, limits.bodyBytesSmall - 100, limits.bodyBytesSmall + 100, 5_000_000];
const ways = sizes.flatMap((size) => [false, true].map((chunked) => ({ size, chunked })));
/** JSON whose text would change if it were parsed and written again. */
const json = (size: number) => `{ "b":1e400,"a":"é漢😀${"x".repeat(size)}" }`;

describe("A body", () => {
  it.each(ways)("is passed on unchanged: $size bytes, chunked: $chunked", async ({ size, chunked }) => {
    const { id } = (await run(Buffer.from(`{"input":${json(size)}}`), chunked)).json;
    const [job] = await scene.take(worker);
    const input = Buffer.concat((await scene.parts.reader.input(job!.no))!.map((piece) => Buffer.from(piece)));
    expect([job?.id, input.toString() === json(size)]).toEqual([id, true]);
    expect((await done(id, Buffer.from(`{"output":${json(size)}}`), chunked)).status).toBe(200);
    const found = (await scene.parts.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() }))!;
    const { output, share } = await wholeJob(scene.parts, endpoint, found, scene.stays);
    expect(stringOf(await wholeOf(output as Pieced)) === json(size)).toBe(true);
    share?.release();
  });

  it.each(ways)("that is not UTF-8 is refused from a client, and fails a job: $size, $chunked", async (way) => {
    const bad = (name: string) =>
      Buffer.concat([Buffer.from(`{"${name}":{"a":"${"x".repeat(way.size)}`), Buffer.from([0xff]), Buffer.from('"}}')]);
    expect((await run(bad("input"), way.chunked)).json).toMatchObject({ code: "INVALID_JSON" });
    const id = await scene.running(endpoint, worker);
    expect((await done(id, bad("output"), way.chunked)).status).toBe(200);
    expect(await scene.state(endpoint, id)).toBe("FAILED");
  });

  it.each([false, true])(
    "counts as the same body under its key when it is sent again, chunked: %s",
    async (chunked) => {
      const body = (end: string) => Buffer.from(`{"input":${json(1_000_000)},"webhook":null}${end}`);
      const headers = { "idempotency-key": `large-${chunked}` };
      const first = await run(body(""), chunked, headers);
      expect((await run(body(""), chunked, headers)).json.id).toBe(first.json.id);
      expect((await run(body(" "), chunked, headers)).json.code).toBe("IDEMPOTENCY_CONFLICT");
    },
  );

  it.each([false, true])("over the limit is refused, chunked: %s", async (chunked) => {
    const answer = await run(Buffer.alloc(limits.runBytesMax + 1, " "), chunked);
    expect([answer.status, answer.json.code]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  });
});
