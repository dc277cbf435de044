import * as api from "@millrace/api";
import Type, { type TSchema } from "typebox";
import { Errors } from "typebox/value";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { type Answer, type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

const list = "/v1/webhooks/deliveries";
let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let worker: LiveWorker;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  worker = await scene.worker(endpoint);
  scene.run(scene.loops.deliver(), scene.loops.expire());
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

function expectShape(answer: Answer, schema: TSchema): void {
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  expect([...Errors(schema, answer.json)]).toEqual([]);
}

interface Shown {
  readonly id: string;
  readonly jobId: string;
  readonly state: string;
}

/** Ends a job whose receiver answers with this status; resolves with its newest delivery once that has ended. */
async function ended(status: number, result?: object): Promise<Shown> {
  scene.sender.status = status;
  const id = await scene.running(endpoint, worker, { input: {}, webhook: "https://example.com/" });
  await scene.done(worker, id, result);
  await scene.advance(3 * limits.webhookRetryMs);
  return (await http.get(`${list}?jobId=${id}`)).json[0];
}
const redeliver = (id: string) => http.post(`${list}/${id}/redeliver`, {});

describe("Webhook deliveries over REST", () => {
  it("are listed with each attempt's outcome", async () => {
    const id = await scene.running(endpoint, worker, { input: {}, webhook: "https://example.com/" });
    await scene.done(worker, id);
    await scene.advance(100);
    scene.sender.posts[0]!.answer({ status: 500, reply: "no room" });
    await scene.advance(limits.webhookRetryMs + 1_000);
    scene.sender.posts[1]!.answer({ error: "the call failed" });
    await scene.advance(100);
    const answer = await http.get(`${list}?jobId=${id}`);
    expectShape(answer, Type.Array(api.WebhookDelivery));
    const attempts = [{ status: 500 }, { error: "the call failed" }];
    expect(answer.json).toMatchObject([{ jobId: id, state: "pending", attempts }]);
    expect(answer.text).not.toContain("no room");
    const { json } = await http.get(`${list}/${answer.json[0].id}`);
    expect(json.attempts).toMatchObject([{ status: 500, reply: "no room" }, { error: "the call failed" }]);
    expect((await http.get(`${list}?jobId=nothing`)).json).toEqual([]);
  });

  it("are shown without their URL's password, and so is their job", async () => {
    const webhook = "https://user:hidden@example.com/hook?a=1";
    const id = await scene.running(endpoint, worker, { input: {}, webhook });
    await scene.done(worker, id);
    await scene.advance(100);
    expect(scene.sender.posts.at(-1)?.url).toBe(webhook);
    const [delivery] = (await http.get(`${list}?jobId=${id}`)).json;
    expect(delivery.url).toBe("https://user@example.com/hook?a=1");
    const story = await http.get(`/v1/endpoints/${endpoint.id}/jobs/${id}`);
    expect(story.json.webhook).toBe("https://user@example.com/hook?a=1");
  });

  it("are listed by endpoint and state, a page at a time, and shown one by one", async () => {
    const [first, second, third] = [await ended(500), await ended(200), await ended(500)];
    const ids = async (query: string) => (await http.get(`${list}?${query}`)).json.map(({ id }: Shown) => id);
    expect(await ids("limit=2")).toEqual([third.id, second.id]);
    expect(await ids(`limit=2&before=${second.id}`)).toEqual([first.id]);
    expect(await ids("state=failed")).toEqual([third.id, first.id]);
    expect(await ids(`state=delivered&endpointId=${endpoint.id}`)).toEqual([second.id]);
    expect([await ids("state=pending"), await ids("endpointId=nothing")]).toEqual([[], []]);
    const one = await http.get(`${list}/${second.id}`);
    expectShape(one, api.WebhookDelivery);
    expect(one.json).toEqual(second);
    expect((await http.get(`${list}/msg_nothing`)).json).toMatchObject({ code: "NOT_FOUND" });
  });

  it.each([
    ["state=lost", "'state'"],
    ["limit=0", "'limit'"],
    ["limit=101", "'limit'"],
    ["limit=1.5", "'limit'"],
    ["before=msg_nothing", "'before'"],
  ])("are not listed with %s", async (query, field) => {
    const { status, json } = await http.get(`${list}?${query}`);
    expect([status, json.error]).toEqual([400, expect.stringContaining(field)]);
  });

  it("of a deleted endpoint are listed until they are forgotten, also by the next server, for their owner alone", async () => {
    const [failed, delivered] = [await ended(500), await ended(200)];
    const { key } = await scene.stranger();
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
    await scene.parts.registry.removeEndpoint(endpoint, scene.clock.now());
    const ids = async (query: string) => (await http.get(`${list}?${query}`)).json.map(({ id }: Shown) => id);
    const expectListed = async () => {
      expect(await ids("")).toEqual([delivered.id, failed.id]);
      expect(await ids(`state=failed&endpointId=${endpoint.id}`)).toEqual([failed.id]);
      expect(await ids(`jobId=${failed.jobId}&before=${delivered.id}`)).toEqual([failed.id]);
      expect((await http.get(`${list}/${failed.id}`)).json).toMatchObject(failed);
    };
    await expectListed();
    expect((await http.get(list, { key })).json).toEqual([]);
    await http.close();
    scene = await scene.restart();
    http = await openHttp(scene);
    scene.run(scene.loops.deliver(), scene.loops.expire());
    await expectListed();
    await scene.advance(limits.deliveryKeptMs + limits.forgetMs);
    scene.parts.bell.ring("expiries"); // old records go with the next sweep
    await scene.advance(100);
    expect(await ids("")).toEqual([]);
  });

  it.each([200, 500])("answered with %i are sent once more when asked, under the same id", async (before) => {
    const { id, state } = await ended(before);
    const attempts = before === 200 ? [{ status: 200 }] : [{ status: 500 }, { status: 500 }, { status: 500 }];
    expect(state).toBe(before === 200 ? "delivered" : "failed");
    scene.sender.status = undefined;
    const again = await redeliver(id);
    expectShape(again, api.WebhookDelivery);
    expect(again.json).toMatchObject({ id, state: "pending", attempts });
    expect((await redeliver(id)).json).toMatchObject({
      code: "INVALID_STATE",
      error: "The delivery has not ended: it is being sent now.",
    });
    await scene.advance(100);
    scene.sender.posts.at(-1)!.answer({ status: 200 });
    await scene.advance(100);
    expect((await http.get(`${list}/${id}`)).json).toMatchObject({
      state: "delivered",
      attempts: [...attempts, { status: 200 }],
    });
    expect(new Set(scene.sender.posts.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([id]));
    expect(scene.sender.posts).toHaveLength(attempts.length + 1);
  });

  it("are not sent again between two attempts: the next one's time is named", async () => {
    scene.sender.status = 500;
    const jobId = await scene.running(endpoint, worker, { input: {}, webhook: "https://example.com/" });
    await scene.done(worker, jobId);
    await scene.advance(100);
    const [{ id, nextAttemptAt }] = (await http.get(`${list}?jobId=${jobId}`)).json;
    expect((await redeliver(id)).json).toMatchObject({
      code: "INVALID_STATE",
      error: `The delivery has not ended: its next attempt is due at ${nextAttemptAt}.`,
    });
  });

  it("are not sent again once their job was retried: the newest one is named", async () => {
    const old = await ended(500, { error: "no" });
    expect((await http.post(`/v2/${endpoint.id}/retry/${old.jobId}`, {})).status).toBe(200);
    expect((await redeliver(old.id)).json).toMatchObject({
      code: "INVALID_STATE",
      error: "The job was retried and has not ended yet: its next end is a delivery of its own.",
    });
    await scene.take(worker);
    await scene.done(worker, old.jobId);
    await scene.advance(100);
    const [newest] = (await http.get(`${list}?jobId=${old.jobId}`)).json;
    expect((await redeliver(old.id)).json.error).toContain(newest.id);
  });

  it("are not sent again without end: each attempt is kept", async () => {
    const { id } = await ended(200);
    for (let n = 1; n < limits.webhookTriesMax; n++) {
      expect((await redeliver(id)).status).toBe(200);
      await scene.advance(100);
    }
    expect((await redeliver(id)).json).toMatchObject({
      code: "INVALID_STATE",
      error: expect.stringMatching(/^The delivery was sent 20 times/),
    });
    expect(scene.sender.posts).toHaveLength(limits.webhookTriesMax);
  });

  it("are not sent again once their job is gone", async () => {
    const { id, jobId } = await ended(200);
    await http.get(`/v2/${endpoint.id}/status/${jobId}?ttl=10000`);
    await scene.advance(1_000);
    expect((await redeliver(id)).json).toMatchObject({
      code: "INVALID_STATE",
      error: "There is nothing to send: the job's result is no longer kept.",
    });
    expect(scene.sender.posts).toHaveLength(1);
  });
});
