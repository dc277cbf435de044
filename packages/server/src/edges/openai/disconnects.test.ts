import { describe, expect, it, vi } from "vitest";
import { asked, base, chat, endpoint, http, openAsking, scene, waiting, worker } from "./asking-fixture.js";

openAsking();

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
