import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { stringOf } from "../../json/json.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { followStream, type Handed, readStream, type StreamEvent } from "./read-stream.js";

let scene: Scene;
let endpoint: Endpoint;
let worker: LiveWorker;
let id: string;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  id = await scene.running(endpoint, worker);
});
afterEach(() => scene.close());

const chunk = (output: unknown) => scene.chunk(worker, id, { output });

/** A client's call; `handed` is set once it is answered. */
function call(waitMs = 1_000, gone = scene.stays) {
  const made = { handed: undefined as Handed | undefined, outputs: undefined as unknown[] | undefined };
  void readStream(scene.parts, endpoint, id, waitMs, gone).then((handed) => {
    made.handed = handed;
    made.outputs = handed.chunks.map(({ output }) => JSON.parse(stringOf(output)));
  });
  return made;
}
async function read() {
  const made = call();
  await scene.advance(limits.streamGatherMs);
  return made;
}

describe("A read of the stream", () => {
  it("hands each chunk out once, oldest first", async () => {
    await chunk("a");
    await chunk("b");
    expect((await read()).outputs).toEqual(["a", "b"]);
    await chunk("c");
    const { handed } = await read();
    expect(handed?.chunks).toEqual([{ index: 2, start: 1, output: '"c"', metrics: undefined }]);
  });

  it("is held for its time while there is nothing", async () => {
    const held = call();
    await scene.advance(999);
    expect(held.outputs).toBeUndefined();
    await scene.advance(1);
    expect(held.handed).toMatchObject({ status: "IN_PROGRESS", chunks: [] });
  });

  it("waits 50 ms more for chunks that follow the first", async () => {
    const held = call();
    await scene.advance(500);
    await chunk("a");
    await scene.advance(49);
    await chunk("b");
    expect(held.outputs).toBeUndefined();
    await scene.advance(1);
    expect(held.outputs).toEqual(["a", "b"]);
  });

  it("does not wait any more once the job is final", async () => {
    await chunk("a");
    await scene.done(worker, id, { output: [] });
    const first = call();
    await scene.settle();
    expect(first.handed?.status).toBe("COMPLETED");
    expect(first.outputs).toEqual(["a"]);
    const second = call();
    await scene.settle();
    expect(second.handed).toMatchObject({ status: "COMPLETED", chunks: [] });
  });

  it("ends at once when the job ends without a chunk", async () => {
    const held = call();
    await scene.settle();
    await scene.done(worker, id, { error: "no" });
    await scene.settle();
    expect(held.handed).toMatchObject({ status: "FAILED", chunks: [] });
  });

  it("says IN_PROGRESS for a final job while chunks are left, with at most 8 MB at a time", async () => {
    for (let n = 0; n < 9; n++) await chunk("x".repeat(1_000_000));
    await scene.done(worker, id);
    const first = call();
    await scene.settle();
    expect([first.handed?.status, first.handed?.chunks.length]).toEqual(["IN_PROGRESS", 8]);
    const second = call();
    await scene.settle();
    expect([second.handed?.status, second.handed?.chunks.length]).toEqual(["COMPLETED", 1]);
  });

  it("requests memory for the largest possible chunk with its metrics", async () => {
    const output = "x".repeat(limits.chunkBytesMax - 2);
    const metrics = { a: "x".repeat(limits.chunkMetricsBytesMax - 8) };
    await scene.chunk(worker, id, { output, metrics });
    const { streamShares } = scene.parts;
    const asked: number[] = [];
    const noting = { ...scene.parts, streamShares: Object.create(streamShares) as typeof streamShares };
    noting.streamShares.ask = (ownerNo, bytes, gone) => {
      asked.push(bytes);
      return streamShares.ask(ownerNo, bytes, gone);
    };
    for await (const { kind } of followStream(noting, endpoint, id, undefined, scene.stays)) {
      if (kind === "chunks") break;
    }
    expect(asked.every((bytes) => bytes >= 2 * (limits.chunkBytesMax + limits.chunkMetricsBytesMax))).toBe(true);
    expect(asked.length).toBeGreaterThan(0);
  });

  it("by two clients at once gives each chunk to one of them", async () => {
    const calls = [call(), call()];
    await scene.settle();
    for (let n = 0; n < 20; n++) await chunk(n);
    await scene.advance(limits.streamGatherMs);
    await scene.advance(1_000);
    const outputs = calls.flatMap((each) => each.outputs as number[]);
    expect(outputs.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it("that could not be delivered returns its chunks", async () => {
    await chunk("a");
    await chunk("b");
    const { handed } = await read();
    await scene.stores.chunks.handBack({ jobNo: handed!.job.no, chunks: handed!.chunks });
    expect((await read()).outputs).toEqual(["a", "b"]);
  });

  it("starts over with a job that was given back", async () => {
    await chunk("old");
    await read();
    await scene.advance(1_000);
    await scene.take(worker, { holdsNothing: true });
    await chunk("new");
    expect((await read()).handed?.chunks).toEqual([{ index: 0, start: 2, output: '"new"', metrics: undefined }]);
  });

  it("of an unknown job is refused", async () => {
    await refused(readStream(scene.parts, endpoint, "nothing", 1_000, scene.stays), "JOB_NOT_FOUND");
  });

  it("ends when the client disconnects, or the server stops", async () => {
    const client = new AbortController();
    const held = call(30_000, client.signal);
    const other = call(30_000);
    await scene.settle();
    client.abort();
    await scene.settle();
    expect([held.outputs, other.outputs]).toEqual([[], undefined]);
    scene.draining.abort();
    await scene.settle();
    expect(other.outputs).toEqual([]);
  });
});

describe("Following a stream", () => {
  /** Everything that a follower has been sent so far. */
  function follow(from?: { start: number; index: number }) {
    const told: string[] = [];
    const words = (event: StreamEvent): string[] => {
      if (event.kind === "chunks") return event.chunks.map(({ start, index, output }) => `${start}-${index} ${output}`);
      if (event.kind === "status") return [`status ${event.status}`];
      return [event.kind === "done" ? `done ${event.job.status}` : "pause"];
    };
    void (async () => {
      for await (const event of followStream(scene.parts, endpoint, id, from, scene.stays)) told.push(...words(event));
      told.push("end");
    })();
    return told;
  }

  it("sends the state, every chunk as it comes, and the end", async () => {
    await chunk("a");
    const told = follow();
    await scene.settle();
    expect(told).toEqual(["status IN_PROGRESS", '1-0 "a"']);
    await chunk("b");
    await scene.settle();
    await scene.done(worker, id);
    await scene.settle();
    expect(told.slice(2)).toEqual(['1-1 "b"', "done COMPLETED", "end"]);
  });

  it("consumes nothing, and resumes after the last chunk seen", async () => {
    for (const output of ["a", "b", "c"]) await chunk(output);
    const told = follow({ start: 1, index: 1 });
    await scene.settle();
    expect(told).toEqual(["status IN_PROGRESS", '1-2 "c"']);
    expect((await read()).outputs).toEqual(["a", "b", "c"]);
  });

  it("reports that a job starts over, and sends its chunks from the first", async () => {
    await chunk("a");
    const told = follow();
    await scene.settle();
    await scene.advance(1_000);
    await scene.take(worker, { holdsNothing: true });
    await chunk("b");
    await scene.settle();
    expect(told.slice(2).filter((each) => each !== "status IN_QUEUE")).toEqual(["status IN_PROGRESS", '2-0 "b"']);
  });

  it("resumes from the first chunk if the job has started over meanwhile", async () => {
    await chunk("a");
    await scene.advance(1_000);
    await scene.take(worker, { holdsNothing: true });
    await chunk("b");
    const told = follow({ start: 1, index: 0 });
    await scene.settle();
    expect(told).toEqual(["status IN_PROGRESS", '2-0 "b"']);
  });

  it("gives a sign of life every 15 s", async () => {
    const told = follow();
    await scene.advance(15_000);
    expect(told).toEqual(["status IN_PROGRESS", "pause"]);
  });
});
