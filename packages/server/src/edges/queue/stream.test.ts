import { ServerResponse } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { appendChunk } from "../../operations/jobs/finish-job.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
let id: string;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  id = await scene.running(endpoint, worker);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await http.close();
  await scene.close();
});

const say = (word: string) => appendChunk(scene.parts, worker, id, Buffer.from(word));
const events = () => http.get(`/v2/${endpoint.id}/stream/${id}`, { headers: { accept: "text/event-stream" } });

/** The most bytes of replies in one turn of the event loop, and in one write, while `act` runs. */
async function written(act: () => Promise<unknown>): Promise<{ turnBytesMax: number; writeBytesMax: number }> {
  let [turnBytes, turnBytesMax, writeBytesMax] = [0, 0, 0];
  const { write } = ServerResponse.prototype;
  vi.spyOn(ServerResponse.prototype, "write").mockImplementation(function (this: ServerResponse, ...args: unknown[]) {
    const bytes = Buffer.byteLength(args[0] as string | Uint8Array);
    turnBytes += bytes;
    turnBytesMax = Math.max(turnBytesMax, turnBytes);
    writeBytesMax = Math.max(writeBytesMax, bytes);
    return Reflect.apply(write, this, args);
  });
  let isOver = false;
  const over = act().finally(() => {
    isOver = true;
  });
  for (; !isOver; turnBytes = 0) await turn();
  await over;
  return { turnBytesMax, writeBytesMax };
}

describe("A large chunk as an event", () => {
  it.each([
    ["small", 10],
    ["large", limits.chunkBytesMax - 100],
  ])("is one line of data, whatever whitespace is between its tokens: %s", async (_, length) => {
    const value = "é\n".repeat(length / 4);
    const output = `[\n${JSON.stringify(value)},\r\n1\r]`;
    await say(`{"output":${output},"metrics":{\n"speed":\r\n2\n}}`);
    await scene.done(worker, id, { output: [] });
    const chunks = (await events()).text.split("\n\n").filter((event) => event.startsWith("event: chunk\n"));
    expect(chunks).toHaveLength(1);
    const lines = chunks[0]!.split(/\r\n|\r|\n/);
    expect(lines.slice(0, 2)).toEqual(["event: chunk", "id: 1-0"]);
    expect(lines.map((line) => line.split(": ")[0])).toEqual(["event", "id", "data"]);
    const { output: read, metrics } = JSON.parse(lines[2]!.slice("data: ".length));
    expect([read[0] === value, read[1], metrics]).toEqual([true, 1, { speed: 2, stream_index: 0 }]);
  });

  it("is written in slices, within the budget per turn that all large replies share", async () => {
    for (let n = 0; n < 3; n++) await say(`{"output":"${"é".repeat(limits.chunkBytesMax / 2 - 100)}"}`);
    await scene.done(worker, id, { output: [] });
    const { turnBytesMax, writeBytesMax } = await written(() => Promise.all(Array.from({ length: 10 }, events)));
    expect(writeBytesMax).toBe(limits.lentWriteBytes);
    // A turn measured here may overlap two turns of the budget.
    expect(turnBytesMax).toBeLessThanOrEqual(2 * (limits.lentBytesPerTurn + limits.lentWriteBytes));
  });
});

describe("A reply of chunks", () => {
  it("has large and small chunks in order, as the JSON they arrived as", async () => {
    const large = `"${"é".repeat(limits.chunkTextBytesMax)}"`;
    for (const output of ["1", large, "2.0"]) await say(`{"output":${output}}`);
    await scene.done(worker, id, { output: [] });
    const { text } = await http.get(`/v2/${endpoint.id}/stream/${id}`);
    const chunk = (output: string, index: number) => `{"output":${output},"metrics":{"stream_index":${index}}}`;
    expect(text === `[${["1", large, "2.0"].map(chunk).join(",")}]`).toBe(true);
  });
});

it("Small chunks as events are written together, and take turns with all other work", async () => {
  const text = "x".repeat(limits.eventsTextBytes / 4);
  for (let n = 0; n < 40; n++) await say(`{"output":"${text}"}`);
  await scene.done(worker, id, { output: [] });
  const write = vi.spyOn(ServerResponse.prototype, "write");
  const { value, waits } = await withTurns(events);
  expect(value.text.match(/^event: chunk$/gm)).toHaveLength(40);
  expect(waits).toBeGreaterThanOrEqual(10);
  expect(write.mock.calls.length).toBeLessThan(15);
});

describe("A stream of events", () => {
  it.each([
    ["waits", () => scene.submit(endpoint)],
    ["runs", async () => id],
  ])("ends with gone when a job that %s is deleted by its ttl", async (_, begin) => {
    id = await begin();
    expect((await http.get(`/v2/${endpoint.id}/status/${id}?ttl=10000`)).status).toBe(200);
    const reading = events();
    await scene.until(() => scene.clock.sleeping === 1);
    await scene.advance(10_000);
    const [last = ""] = (await reading).text.trimEnd().split("\n\n").slice(-1);
    expect(last).toMatch(/^event: gone\ndata: \{/);
    const body = JSON.parse(last.slice(last.indexOf("{")));
    expect(body).toMatchObject({ code: "JOB_NOT_FOUND", error: expect.any(String) });
  });
});
