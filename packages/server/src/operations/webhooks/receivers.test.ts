import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { made, refused } from "../../edges/rest-v1/answers-fixture.js";
import { limits } from "../../limits/index.js";
import { forgetEndedLoop } from "../../loops/forget-ended.js";
import type { LiveWorker } from "../../memory/registry.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  scene.sender.status = 200;
  scene.run(scene.loops.deliver(), scene.loops.expire());
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

// biome-ignore lint/suspicious/noExplicitAny: tests check the body
type Json = any;
const bad = "https://bad.example.com:8443";
const good = "https://good.example.com";
const list = (query = ""): Promise<Json> => made(http.get(`/v1/webhooks/receivers${query}`));
const one = async (origin: string): Promise<Json> => (await list()).find((each: Json) => each.origin === origin);
const turn = (id: string, to: string): Promise<Json> =>
  made(http.post(`/v1/webhooks/receivers/${id}/${to}`, undefined));
const deliveries = (query: string): Promise<Json> => made(http.get(`/v1/webhooks/deliveries?${query}`));
const postsTo = (origin: string) => scene.sender.posts.filter(({ url }) => url.startsWith(origin)).length;

async function completed(webhook = `${bad}/hook`): Promise<string> {
  const id = await scene.running(endpoint, worker, { input: {}, webhook });
  await scene.done(worker, id);
  await scene.advance(100);
  return id;
}

describe("A webhook receiver", () => {
  it("is listed with how its attempts went, and told once when it keeps failing", async () => {
    await completed(`${good}/a?b=c`);
    await completed(`${good}/d`);
    scene.sender.status = 500;
    await completed();
    await completed();
    await scene.advance(3 * limits.webhookRetryMs);
    expect(await list()).toMatchObject([
      { origin: bad, state: "failing", failures: 6, lastError: "it answered 500", held: 0 },
      { origin: good, state: "healthy", failures: 0, held: 0 },
    ]);
    expect((await one(bad)).failingSince).toBeDefined();
    const told = scene.events.filter(({ type }) => type === "webhook.failing");
    expect(told).toMatchObject([{ receiverOrigin: bad, failures: limits.receiverFailing, error: "it answered 500" }]);
    scene.sender.status = 200;
    await completed();
    expect(await one(bad)).toMatchObject({ state: "healthy", failures: 0 });
    expect((await list(`?limit=1&after=${encodeURIComponent(bad)}`)).map(({ origin }: Json) => origin)).toEqual([good]);
    await refused(http.get("/v1/webhooks/receivers?limit=0"), 400, /'limit'/);
    await refused(http.get("/v1/webhooks/receivers?after=zzz"), 400, /'after' must be the origin of a receiver/);
  });

  it("that is paused gets nothing; what was held is sent when it is resumed, also by the next server", async () => {
    await completed();
    const { id } = await one(bad);
    expect(await turn(id, "pause")).toMatchObject({ state: "paused", pausedAt: expect.any(String) });
    const before = postsTo(bad);
    const jobs = [await completed(), await completed()];
    await completed(good);
    expect([postsTo(bad) - before, postsTo(good)]).toEqual([0, 1]);
    expect(await one(bad)).toMatchObject({ state: "paused", held: 2 });
    const [held] = await deliveries(`jobId=${jobs[0]}`);
    expect(held).toMatchObject({ state: "held", attempts: [] });
    await refused(http.post(`/v1/webhooks/deliveries/${held.id}/redeliver`, undefined), 400, /resume it/);
    await http.close();
    scene = await scene.restart();
    scene.sender.status = 200;
    http = await openHttp(scene);
    scene.run(scene.loops.deliver(), scene.loops.expire());
    await scene.advance(60_000);
    expect(scene.sender.posts).toEqual([]);
    expect(await turn(id, "resume")).toMatchObject({ state: "healthy" });
    await scene.advance(2_000);
    expect(scene.sender.posts.map(({ body }) => body.id)).toEqual(jobs);
    expect(await deliveries(`jobId=${jobs[0]}`)).toMatchObject([{ state: "delivered" }]);
    expect(await one(bad)).toMatchObject({ held: 0 });
  });

  it("keeps the jobs whose deliveries it holds", async () => {
    await completed();
    const { id } = await one(bad);
    await turn(id, "pause");
    const job = await completed();
    await scene.advance(3_600_000); // longer than a job's result is kept
    await turn(id, "resume");
    await scene.advance(2_000);
    expect(scene.sender.posts.at(-1)?.body).toMatchObject({ id: job, status: "COMPLETED" });
  });

  it("holds a bounded number; the rest ends, and says why", async () => {
    await completed();
    const { id } = await one(bad);
    await turn(id, "pause");
    const { receivers } = scene.parts;
    const { holdingOf } = receivers;
    const most = { count: limits.heldPerUserMax, bytes: limits.heldBytesPerUserMax };
    for (const [already, why] of [
      [{ count: most.count, bytes: 0 }, /paused, and 10000 deliveries wait for your paused receivers/],
      [{ count: 1, bytes: most.bytes }, /paused, and deliveries of 1 GiB wait/],
    ] as const) {
      Object.assign(receivers, { holdingOf: async (owners: number[]) => new Map(owners.map((no) => [no, already])) });
      const job = await completed();
      expect(await deliveries(`jobId=${job}`)).toMatchObject([
        { state: "failed", attempts: [{ error: expect.stringMatching(why) }] },
      ]);
    }
    Object.assign(receivers, { holdingOf });
    await completed();
    expect(await one(bad)).toMatchObject({ held: 1 });
  });

  it("counts the bytes of what it holds for its owner", async () => {
    await completed();
    await turn((await one(bad)).id, "pause");
    const id = await scene.running(endpoint, worker, { input: {}, webhook: `${bad}/hook` });
    await scene.done(worker, id, { output: "x".repeat(10_000) });
    await scene.advance(100);
    const sum = (await scene.stores.receivers.holdingOf([endpoint.ownerNo])).get(endpoint.ownerNo);
    expect(sum).toMatchObject({ count: 1 });
    expect(sum?.bytes).toBeGreaterThan(10_000);
    expect(sum?.bytes).toBeLessThan(11_000);
  });

  it("lists what is held, and receivers by their state", async () => {
    await completed();
    await completed(good);
    const { id } = await one(bad);
    await turn(id, "pause");
    const held = await completed();
    expect((await deliveries("state=held")).map(({ jobId }: Json) => jobId)).toEqual([held]);
    expect(await deliveries(`state=held&jobId=${held}`)).toHaveLength(1);
    expect([await deliveries("state=pending"), await deliveries(`state=pending&jobId=${held}`)]).toEqual([[], []]);
    expect(await deliveries("state=delivered")).toHaveLength(2);
    expect((await list("?state=paused")).map(({ origin }: Json) => origin)).toEqual([bad]);
    expect((await list("?state=healthy")).map(({ origin }: Json) => origin)).toEqual([good]);
    expect(await list("?state=failing")).toEqual([]);
    await refused(http.get("/v1/webhooks/receivers?state=ill"), 400, /'state' must be one of healthy, failing, paused/);
    await refused(http.get("/v1/webhooks/deliveries?state=ill"), 400, /'state' must be one of pending, held/);
  });

  it("gets what was held for an endpoint that was deleted long ago", async () => {
    await completed();
    const { id } = await one(bad);
    await turn(id, "pause");
    const job = await completed();
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
    await scene.parts.registry.removeEndpoint(endpoint, scene.clock.now());
    await scene.advance(2 * limits.workerRowKeptMs);
    const forgetEnded = () => forgetEndedLoop(scene.parts).tick(scene.clock.now(), new AbortController().signal);
    await forgetEnded();
    expect(await deliveries("state=held")).toMatchObject([{ jobId: job, state: "held" }]);
    await turn(id, "resume");
    await scene.advance(2_000);
    expect(scene.sender.posts.at(-1)?.body).toMatchObject({ id: job, status: "COMPLETED" });
    await forgetEnded();
    expect(await deliveries(`jobId=${job}`)).toMatchObject([{ state: "delivered" }]);
    await scene.advance(limits.deliveryKeptMs + limits.forgetMs);
    scene.parts.bell.ring("expiries"); // old records go with the next sweep
    await scene.advance(100);
    await forgetEnded();
    expect(scene.parts.registry.endpointByNo(endpoint.no)).toBeUndefined();
  });

  it("sends more than one batch of what it held", async () => {
    await completed();
    const { id } = await one(bad);
    await turn(id, "pause");
    for (let n = 0; n < 5; n++) await completed();
    const before = postsTo(bad);
    const release = scene.parts.receivers.release;
    Object.assign(scene.parts.receivers, { release: (now: number) => release(now, 2) });
    await turn(id, "resume");
    await scene.advance(3_000);
    expect(postsTo(bad) - before).toBe(5);
  });

  it("is paused and resumed by its owner alone, which the audit log has", async () => {
    await completed();
    const { id } = await one(bad);
    const { key } = await scene.stranger();
    await refused(http.get(`/v1/webhooks/receivers/${id}`, { key }), 404, /no webhook receiver/);
    await refused(http.post(`/v1/webhooks/receivers/${id}/pause`, undefined, { key }), 404, /no webhook receiver/);
    expect(await made(http.get("/v1/webhooks/receivers", { key }))).toEqual([]);
    await turn(id, "pause");
    await turn(id, "pause"); // changes nothing, and is not recorded
    await turn(id, "resume");
    const [delivery] = await deliveries("limit=1");
    await made(http.post(`/v1/webhooks/deliveries/${delivery.id}/redeliver`, undefined));
    const { entries } = await made(http.get(`/v1/audit?resource=${id}`));
    expect(entries.map(({ action }: Json) => action)).toEqual(["receiver.resume", "receiver.pause"]);
    expect((await made(http.get(`/v1/audit?resource=${delivery.id}`))).entries).toMatchObject([
      { action: "delivery.redeliver" },
    ]);
    expect((await http.post(`/v1/webhooks/deliveries/${delivery.id}/redeliver`)).status).toBe(400);
    expect((await made(http.get(`/v1/audit?resource=${delivery.id}`))).entries).toHaveLength(1);
  });

  it("that was not called for long is forgotten, unless it is paused", async () => {
    await completed(good);
    await completed();
    await turn((await one(bad)).id, "pause");
    await scene.advance(limits.receiverKeptMs + limits.forgetMs);
    scene.parts.bell.ring("expiries"); // old records go with the next sweep
    await scene.advance(100);
    expect((await list()).map(({ origin }: Json) => origin)).toEqual([bad]);
  });

  it("is one of a bounded number of its owner's", async () => {
    const at = scene.clock.now();
    const heard = (origin: string) => ({ id: origin, ownerNo: 1, origin, at, error: undefined });
    await scene.stores.receivers.note(heard("a"), 2);
    await scene.stores.receivers.note(heard("b"), 2);
    await scene.stores.receivers.note(heard("c"), 2);
    await scene.stores.receivers.note(heard("a"), 2);
    const found = await scene.stores.receivers.list({ ownerNo: 1, failing: 5, limit: 10 });
    expect(found.map(({ origin }) => origin)).toEqual(["a", "b"]);
  });
});
