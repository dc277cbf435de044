import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { stringOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { Scene } from "../../testing/scene-fixture.js";
import { cancelJob } from "./change-job.js";
import { appendChunk, finishJob, finishJobs } from "./finish-job.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
});
afterEach(() => scene.close());

const running = () => scene.running(endpoint, worker);
const text = (word: string) => Buffer.from(word);

/** A job's status body without its times and its worker. */
async function result(id: string) {
  const { status, output, error } = await scene.status(endpoint, id);
  return { status, ...(output === undefined ? {} : { output }), ...(error === undefined ? {} : { error }) };
}

describe("A final result", () => {
  it.each([
    ['{"output": {"a": 1}}', { status: "COMPLETED", output: { a: 1 } }],
    ['{"output": []}', { status: "COMPLETED", output: [] }],
    ['{"output": 0}', { status: "COMPLETED", output: 0 }],
    ['{"output": ""}', { status: "COMPLETED", output: "" }],
    ['{"output": false}', { status: "COMPLETED", output: false }],
    ['{"output": null}', { status: "COMPLETED" }],
    ["{}", { status: "COMPLETED" }],
    ['{"error": null, "output": 7}', { status: "COMPLETED", output: 7 }],
    ['{"status": "COMPLETED", "output": 1}', { status: "COMPLETED", output: 1 }],
    ['{"error": "it broke"}', { status: "FAILED", error: "it broke" }],
    ['{"error": "it broke", "output": [1]}', { status: "FAILED", error: "it broke", output: [1] }],
    ['{"error": {"type": "ValueError"}}', { status: "FAILED", error: '{"type": "ValueError"}' }],
    ['{"error": false}', { status: "FAILED", error: "false" }],
    ['{"error": ""}', { status: "FAILED", error: expect.stringMatching(/\S/) }],
  ])("of %s makes the job %j", async (word, expected) => {
    const id = await running();
    await finishJob(scene.parts, worker, id, text(word));
    expect(await result(id)).toEqual(expected);
  });

  it.each([
    ['{"output": NaN}', /not JSON.*position 11/],
    ['{"output": [1, Infinity]}', /not JSON.*position 15/],
    ["", /not JSON.*position 0/],
    ['{"output": 1', /not JSON.*position 12/],
    ["[1]", /not a JSON object/],
  ])("of %j, which is not a JSON object, fails the job and says where", async (word, sentence) => {
    const id = await running();
    await finishJob(scene.parts, worker, id, text(word));
    expect(await result(id)).toEqual({ status: "FAILED", error: expect.stringMatching(sentence) });
  });

  it("that is not UTF-8 fails the job", async () => {
    const id = await running();
    await finishJob(scene.parts, worker, id, Buffer.from([0x22, 0xc3, 0x28, 0x22]));
    expect(await result(id)).toMatchObject({ status: "FAILED", error: expect.stringMatching(/UTF-8/) });
  });

  it("that was too long to keep fails the job, naming the limit", async () => {
    const id = await running();
    await finishJob(scene.parts, worker, id, undefined);
    expect(await result(id)).toMatchObject({ status: "FAILED", error: expect.stringContaining("20971520") });
  });

  it("of one byte over the limit fails the job, and of the limit itself completes it", async () => {
    const sized = (bytes: number) => text(`{"output":"${"x".repeat(bytes - 13)}"}`);
    const fits = await running();
    await finishJob(scene.parts, worker, fits, sized(limits.outputBytesMax));
    expect(await scene.state(endpoint, fits)).toBe("COMPLETED");
    const tooLong = await running();
    await finishJob(scene.parts, worker, tooLong, sized(limits.outputBytesMax + 1));
    expect(await result(tooLong)).toMatchObject({ status: "FAILED", error: expect.stringContaining("20971520") });
  });

  it("is passed on as the text it arrived as", async () => {
    const id = await running();
    await finishJob(scene.parts, worker, id, text('{"output": {"b": 1.0, "a": 1e400, "a": "\\u00e9"}}'));
    const job = await scene.stores.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() });
    expect(job!.output).toBe('{"b": 1.0, "a": 1e400, "a": "\\u00e9"}');
  });

  it("that comes twice is a success that changes nothing", async () => {
    const id = await running();
    await scene.done(worker, id, { output: 1 });
    await scene.done(worker, id, { output: 2 });
    await scene.done(worker, id, { error: "no" });
    expect(await result(id)).toEqual({ status: "COMPLETED", output: 1 });
    expect(await scene.health(endpoint)).toMatchObject({ running: 0, completed: 1, failed: 0 });
  });

  it("of a worker that does not hold the job is dropped", async () => {
    const id = await running();
    const other = await scene.worker(endpoint);
    await scene.done(other, id, { output: "not mine" });
    expect(await result(id)).toEqual({ status: "IN_PROGRESS" });
    await scene.done(other, "nothing", { output: "no job" });
  });

  it("on a cancelled job confirms the stop, and its worker is looked at again", async () => {
    const id = await running();
    await cancelJob(scene.parts, endpoint, id);
    let rings = 0;
    scene.parts.bell.on("workers", () => rings++);
    await scene.done(worker, id, { output: "late" });
    expect([await scene.state(endpoint, id), rings]).toEqual(["CANCELLED", 1]);
  });

  it("of a worker of another endpoint is dropped", async () => {
    const id = await running();
    await scene.done(await scene.worker(await scene.endpoint()), id, { output: "stolen" });
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
  });

  it("that asks for a fresh worker closes this one", async () => {
    const id = await running();
    await scene.done(worker, id, { output: 1, stopPod: true });
    expect(await result(id)).toEqual({ status: "COMPLETED", output: 1 });
    expect(worker.row.wanted).toBe("closed");
  });

  it.each(["status", "stopPod", "id"])("keeps its result beside a long %s, which counts as absent", async (name) => {
    const id = await running();
    const long = `[${"true,".repeat(limits.memberBytesMax)}true]`;
    await finishJob(scene.parts, worker, id, text(`{"output":1,"${name}":${long}}`));
    expect(await result(id)).toEqual({ status: "COMPLETED", output: 1 });
    expect(worker.row.wanted).not.toBe("closed");
  });

  it("drops the progress reported before", async () => {
    const id = await running();
    await scene.done(worker, id, { status: "IN_PROGRESS", output: "50 %" });
    await scene.done(worker, id, { error: "it broke" });
    expect(await result(id)).toEqual({ status: "FAILED", error: "it broke" });
  });
});

describe("Progress", () => {
  it("is shown as the output of a running job, and does not end it", async () => {
    const id = await running();
    await scene.done(worker, id, { status: "IN_PROGRESS", output: { done: 1 } });
    expect(await result(id)).toEqual({ status: "IN_PROGRESS", output: { done: 1 } });
    await scene.done(worker, id, { status: "IN_PROGRESS", output: { done: 2 } });
    expect(await result(id)).toEqual({ status: "IN_PROGRESS", output: { done: 2 } });
  });

  it("after the end, or of another worker, is dropped", async () => {
    const id = await running();
    await scene.done(await scene.worker(endpoint), id, { status: "IN_PROGRESS", output: "not mine" });
    expect(await result(id)).toEqual({ status: "IN_PROGRESS" });
    await scene.done(worker, id, { output: null });
    await scene.done(worker, id, { status: "IN_PROGRESS", output: "late" });
    expect(await result(id)).toEqual({ status: "COMPLETED" });
  });
});

describe("A batch of final results", () => {
  it("is judged result by result", async () => {
    const ids = [await scene.submit(endpoint), await scene.submit(endpoint), await scene.submit(endpoint)];
    await scene.take(worker, { count: 3 });
    const batch = [
      { id: ids[0], output: 1, status: "x".repeat(limits.memberBytesMax) },
      { id: "nothing", output: 2 },
      "no word",
      { id: "x".repeat(limits.memberBytesMax), output: 3 },
      { id: ids[1], error: "no" },
    ];
    await finishJobs(scene.parts, worker, text(JSON.stringify(batch)));
    expect(await Promise.all(ids.map(result))).toEqual([
      { status: "COMPLETED", output: 1 },
      { status: "FAILED", error: "no" },
      { status: "IN_PROGRESS" },
    ]);
  });

  it("that is large is handled in groups, never in one turn", async () => {
    const bytes = Math.floor(limits.doneGroupBytes / 5);
    const ids: string[] = [];
    for (let n = 0; n < 11; n++) ids.push(await scene.submit(endpoint));
    await scene.take(worker, { count: ids.length });
    const batch = ids.map((id) => `{"id":"${id}","output":"`).map((start) => `${start.padEnd(bytes - 2, "x")}"}`);
    // The part of the work that is not done in a turn is moved to the thread.
    const post = Worker.prototype.postMessage;
    const posts: number[] = [0]; // one entry for each turn
    let isOpen = true;
    const beat = () => isOpen && posts.push(0) && setImmediate(beat);
    setImmediate(beat);
    const spy = vi.spyOn(Worker.prototype, "postMessage").mockImplementation(function (this: Worker, ...task) {
      posts[posts.length - 1]!++;
      return post.apply(this, task);
    });
    await finishJobs(scene.parts, worker, text(`[${batch.join(",")}]`));
    isOpen = false;
    spy.mockRestore();
    expect(new Set(await Promise.all(ids.map((id) => scene.state(endpoint, id))))).toEqual(new Set(["COMPLETED"]));
    expect(Math.max(...posts)).toBeLessThan(5);
  });

  it.each(["", "{}", "[", "[[]]", "null"])("of %j changes nothing", async (word) => {
    const id = await running();
    await finishJobs(scene.parts, worker, text(word));
    await finishJobs(scene.parts, worker, undefined);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
  });
});

describe("A chunk", () => {
  const chunksOf = async (id: string) => {
    const { no } = (await scene.stores.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() }))!;
    return scene.stores.chunks.read({ jobNo: no, fromIndex: 0, bytesMax: 100_000_000 });
  };

  it("is kept with its metrics, as the text it arrived as", async () => {
    const id = await running();
    await scene.chunk(worker, id, { output: { a: 1 }, metrics: { speed: 2 } });
    await scene.chunk(worker, id, { output: null, metrics: "no object" });
    expect(await chunksOf(id)).toEqual([
      { index: 0, start: 1, output: '{"a":1}', metrics: '{"speed":2}' },
      { index: 1, start: 1, output: "null", metrics: undefined },
    ]);
  });

  it.each([[{ error: "later" }], [[1]], ["text"], [{}]])("of %j is skipped", async (word) => {
    const id = await running();
    await scene.chunk(worker, id, word);
    expect(await chunksOf(id)).toEqual([]);
  });

  it("of a worker that does not hold the job, or after the end, is dropped", async () => {
    const id = await running();
    await scene.chunk(await scene.worker(endpoint), id, { output: 1 });
    await scene.done(worker, id);
    await scene.chunk(worker, id, { output: 2 });
    expect(await chunksOf(id)).toEqual([]);
  });

  it.each([
    ["as long as they may be", 0, true],
    ["longer", 1, false],
  ])("is kept whole if its metrics are %s", async (_, more, isKept) => {
    const id = await running();
    const metrics = { a: "x".repeat(limits.chunkMetricsBytesMax - 8 + more) };
    await scene.chunk(worker, id, { output: 1, metrics });
    expect(await chunksOf(id)).toEqual([
      { index: 0, start: 1, output: "1", metrics: isKept ? JSON.stringify(metrics) : undefined },
    ]);
  });

  it("over 1 MB is never converted to text on this thread, nor is more of an error than is kept", async () => {
    const texts = vi.spyOn(Buffer.prototype, "toString");
    const length = 3 * limits.chunkBytesMax;
    try {
      const id = await running();
      await appendChunk(scene.parts, worker, id, text(`{"output":"${"é".repeat(length)}"}`));
      await finishJob(scene.parts, worker, id, text(`{"error":"${"é".repeat(length)}"}`));
      const made = texts.mock.results.map(({ value }) => (value as string).length);
      expect(Math.max(...made)).toBeLessThanOrEqual(limits.errorCharsMax);
    } finally {
      texts.mockRestore();
    }
  });

  it("over 1 MB is cut, its pieces are numbered, and each has its metrics", async () => {
    const id = await running();
    const long = "ä".repeat(700_000);
    await scene.chunk(worker, id, { output: long, metrics: { speed: 2 } });
    const chunks = await chunksOf(id);
    const metrics = chunks.map((chunk) => JSON.parse(chunk.metrics!));
    expect(metrics).toEqual([
      { speed: 2, part: 0, parts: 2 },
      { speed: 2, part: 1, parts: 2 },
    ]);
    const outputs = chunks.map(({ output }) => stringOf(output));
    expect(outputs.map((output) => JSON.parse(output)).join("")).toBe(long);
    for (const output of outputs) expect(Buffer.byteLength(output)).toBeLessThanOrEqual(limits.chunkBytesMax);
  });
});
