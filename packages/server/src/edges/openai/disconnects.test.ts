import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { type Call, type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
let base: string;
beforeAll(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
});
beforeEach(async () => {
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  base = `/v2/${endpoint.id}/openai`;
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

const chat = "/v1/chat/completions";
const waiting = () => scene.until(async () => (await scene.health(endpoint)).waiting > 0);

/** Sends a request whose job the worker takes; the answer comes once the worker has reported its result. */
async function asked(body: unknown, more: Call & { method?: string; path?: string } = {}) {
  const { method = "POST", path = chat, ...call } = more;
  const answer = http.call(method, `${base}${path}`, { ...call, ...(body === undefined ? {} : { body }) });
  await waiting();
  const [job] = await scene.take(worker);
  return { answer, job: job!, id: job!.id };
}

describe("A client that disconnects", () => {
  it("before its job is taken cancels it", async () => {
    const client = new AbortController();
    const answer = http.post(`${base}${chat}`, {}, { signal: client.signal });
    await waiting();
    client.abort();
    await expect(answer).rejects.toThrow();
    await scene.until(async () => (await scene.health(endpoint)).waiting === 0);
    expect(await scene.take(worker)).toEqual([]);
  });

  it("while it runs cancels it, and its worker is told", async () => {
    const client = new AbortController();
    const { answer, id } = await asked({}, { signal: client.signal });
    const stops = scene.stops(worker);
    client.abort();
    await expect(answer).rejects.toThrow();
    await scene.until(() => stops.jobs !== undefined);
    expect(stops.jobs).toEqual([id]);
    expect(await scene.state(endpoint, id)).toBe("CANCELLED");
  });

  it("cancels it under an Idempotency-Key too, if no other client waits", async () => {
    const client = new AbortController();
    const more = { signal: client.signal, headers: { "idempotency-key": "alone" } };
    const { answer, id } = await asked({}, more);
    client.abort();
    await expect(answer).rejects.toThrow();
    await scene.until(async () => (await scene.state(endpoint, id)) === "CANCELLED");
  });

  it("leaves a job under an Idempotency-Key running if a client of another server may wait for it", async () => {
    const shared = vi.spyOn(scene.parts.registry, "isShared", "get").mockReturnValue(true);
    const client = new AbortController();
    const sleeping = scene.clock.sleeping;
    const { answer, id } = await asked({}, { signal: client.signal, headers: { "idempotency-key": "elsewhere" } });
    client.abort();
    await expect(answer).rejects.toThrow();
    await scene.until(() => scene.clock.sleeping === sleeping);
    await scene.settle();
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    shared.mockRestore();
  });

  it("after the end changes nothing", async () => {
    const { answer, id } = await asked({});
    await scene.done(worker, id, { output: {} });
    await answer;
    await scene.settle();
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
  });

  it("leaves the job running if another request waits for it under the same Idempotency-Key", async () => {
    const headers = { "idempotency-key": "shared" };
    const client = new AbortController();
    const { answer, id } = await asked({}, { signal: client.signal, headers });
    const sleeping = scene.clock.sleeping;
    const other = http.post(`${base}${chat}`, {}, { headers });
    await scene.until(() => scene.clock.sleeping === sleeping + 1);
    client.abort();
    await expect(answer).rejects.toThrow();
    await scene.until(() => scene.clock.sleeping === sleeping);
    await scene.settle();
    await scene.done(worker, id, { output: { a: 1 } });
    expect((await other).json).toEqual({ a: 1 });
  });

  it("cancels nothing on the queue's own routes", async () => {
    const client = new AbortController();
    const answer = http.post(`/v2/${endpoint.id}/runsync`, { input: {} }, { signal: client.signal });
    await waiting();
    client.abort();
    await expect(answer).rejects.toThrow();
    await scene.settle();
    expect((await scene.take(worker)).length).toBe(1);
  });
});
