import {
  HealthBody,
  JobReference,
  MetricsBody,
  PurgeResult,
  RequestList,
  StatusBody,
  StreamArray,
  StreamEnvelope,
} from "@millrace/api";
import type { TSchema } from "typebox";
import { Errors } from "typebox/value";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../../memory/registry.js";
import { type Answer, type Http, openHttp } from "../../testing/http-fixture.js";
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
  base = `/v2/${endpoint.id}`;
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

/** A success of the queue API is exactly 200, of this shape, and nothing in it is null. */
function expectShape(answer: Answer, schema: TSchema): void {
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  expect([...Errors(schema, answer.json)]).toEqual([]);
  expect(answer.text).not.toMatch(/:null[,}]/);
}
/** A call that is held: `answer` is set once there is one. */
function held(call: Promise<Answer>) {
  const made = { answer: undefined as Answer | undefined };
  void call.then((answer) => {
    made.answer = answer;
  });
  return made;
}
const sleeping = (count: number) => scene.until(() => scene.clock.sleeping === count);

describe("/run", () => {
  it("answers with the id and IN_QUEUE", async () => {
    const answer = await http.post(`${base}/run`, { input: { a: 1 } });
    expectShape(answer, JobReference);
    expect(answer.json).toEqual({ id: expect.stringMatching(/-u1$/), status: "IN_QUEUE" });
  });

  it.each([
    [{ policy: { priority: 1, lowpriority: true, ttl: 20_000 } }, "policy.priority, policy.lowpriority"],
    [{ executionTimeout: 5_000, policy: null, webhook: "" }, "executionTimeout"],
    [{ "é\n": 1, policy: { "\u0000": 1 } }, "policy.%00, %C3%A9%0A"],
    [{ ["x".repeat(100)]: 1 }, "x".repeat(80)],
    [Object.fromEntries([...Array(300).keys()].map((n) => [`a${n}`, n])), /^a0, .*, a19, and 280 more$/],
    [Object.fromEntries([...Array(5).keys()].map((n) => ["世".repeat(80) + n, n])), /^(%E4%B8%96){80}, and 4 more$/],
    [{ s3Config: { accessId: "a", more: "b" } }, null],
  ])("names the fields of %j that it ignores, on every route", async (fields, named) => {
    const body = { input: { ttl: 1 }, ...fields };
    const large = { ...body, input: { text: "x".repeat(300_000) } };
    const waiting = http.post(`${base}/runsync?wait=1000`, body);
    await sleeping(1);
    await scene.advance(1_000);
    const replies = [await waiting, await http.post(`${base}/run`, body), await http.post(`${base}/run`, large)];
    for (const { status, headers } of replies) {
      const ignored = headers.get("x-millrace-ignored");
      expect({ status, ignored }).toEqual({ status: 200, ignored: named && expect.stringMatching(named) });
    }
  });

  it("with a known Idempotency-Key answers with the present status, and after the job's end with the last", async () => {
    const again = () => http.post(`${base}/run`, { input: {} }, { headers: { "idempotency-key": "a" } });
    const { id } = (await again()).json;
    expect((await again()).json).toEqual({ id, status: "IN_QUEUE" });
    await scene.take(worker);
    expect((await again()).json).toEqual({ id, status: "IN_PROGRESS" });
    await scene.done(worker, id);
    expect((await again()).json).toEqual({ id, status: "COMPLETED" });
    await scene.advance(30 * 60_000);
    expect((await again()).json).toEqual({ id, status: "COMPLETED", expired: true });
  });
});

describe("/runsync", () => {
  it("answers with the result, times included", async () => {
    const call = held(http.post(`${base}/runsync`, { input: {} }));
    await sleeping(1);
    await scene.advance(1_000);
    const [job] = await scene.take(worker);
    await scene.advance(2_000);
    await scene.done(worker, job!.id, { output: { b: 1 } });
    await scene.until(() => call.answer !== undefined);
    expectShape(call.answer!, StatusBody);
    expect(call.answer!.json).toEqual({
      id: expect.stringMatching(/^sync-/),
      status: "COMPLETED",
      delayTime: 1_000,
      executionTime: 2_000,
      output: { b: 1 },
      workerId: worker.row.id,
      retries: 0,
    });
  });

  it("answers 200 with the present state when its wait has passed", async () => {
    const call = held(http.post(`${base}/runsync?wait=2000`, { input: {} }));
    await sleeping(1);
    await scene.advance(1_999);
    expect(call.answer).toBeUndefined();
    await scene.advance(1);
    await scene.until(() => call.answer !== undefined);
    expectShape(call.answer!, StatusBody);
    expect(call.answer!.json).toMatchObject({ status: "IN_QUEUE", waitReason: "starting", queuePosition: 0 });
  });

  it.each(["999", "300001", "1e9", "abc", "", "1000.5", "-1"])("is refused with wait=%s", async (wait) => {
    const answer = await http.post(`${base}/runsync?wait=${wait}`, { input: {} });
    expect([answer.status, answer.json.error]).toEqual([400, expect.stringContaining("'wait'")]);
    expect((await scene.health(endpoint)).waiting).toBe(0);
  });

  it("continues without a client that disconnected, and leaves nothing behind", async () => {
    const client = new AbortController();
    const call = http.post(`${base}/runsync`, { input: {} }, { signal: client.signal }).catch(() => undefined);
    await sleeping(1);
    client.abort();
    await call;
    await sleeping(0);
    expect((await scene.health(endpoint)).waiting).toBe(1);
  });
});

describe("/status and /status-sync", () => {
  it("answer POST like GET, in every state", async () => {
    const id = await scene.submit(endpoint);
    const both = async () => {
      const [got, posted] = [await http.get(`${base}/status/${id}`), await http.post(`${base}/status/${id}`)];
      expectShape(got, StatusBody);
      expect(posted.json).toEqual(got.json);
      return got.json.status;
    };
    expect(await both()).toBe("IN_QUEUE");
    await scene.take(worker);
    await scene.done(worker, id, { status: "IN_PROGRESS", output: { done: 0.5 } });
    expect(await both()).toBe("IN_PROGRESS");
    await scene.done(worker, id, { error: "no", output: [1] });
    expect(await both()).toBe("FAILED");
  });

  it("hold /status-sync until the job is final, or for the wait, clamped", async () => {
    const id = await scene.running(endpoint, worker);
    const call = held(http.get(`${base}/status-sync/${id}?wait=1`));
    await sleeping(1);
    await scene.advance(999);
    expect(call.answer).toBeUndefined();
    await scene.advance(1);
    await scene.until(() => call.answer !== undefined);
    expect(call.answer!.json.status).toBe("IN_PROGRESS");
    const next = held(http.post(`${base}/status-sync/${id}`));
    await sleeping(1);
    await scene.done(worker, id, { output: 1 });
    await scene.until(() => next.answer !== undefined);
    expectShape(next.answer!, StatusBody);
    expect(next.answer!.json).toMatchObject({ status: "COMPLETED", output: 1 });
  });

  it.each([
    ["9999", 400],
    ["604800001", 400],
    ["", 400],
    ["abc", 400],
    ["20000", 200],
  ])("set a ttl of '%s': %d", async (ttl, status) => {
    const id = await scene.submit(endpoint);
    expect((await http.get(`${base}/status/${id}?ttl=${ttl}`)).status).toBe(status);
  });

  it("answer 404 if the new ttl has already passed", async () => {
    const id = await scene.submit(endpoint);
    await scene.advance(15_000);
    expect((await http.get(`${base}/status/${id}?ttl=10000`)).json.code).toBe("JOB_NOT_FOUND");
    expect((await http.get(`${base}/status/${id}`)).json.code).toBe("JOB_NOT_FOUND");
  });
});

describe("/stream", () => {
  it("is an array under /v2, and an envelope under /sdk/v2", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.chunk(worker, id, { output: { a: 1 }, metrics: { speed: 2, stream_index: 99 } });
    await scene.done(worker, id, { output: [] });
    const array = await http.get(`${base}/stream/${id}`);
    expectShape(array, StreamArray);
    expect(array.json).toEqual([{ output: { a: 1 }, metrics: { speed: 2, stream_index: 0 } }]);
    const envelope = await http.get(`/sdk${base}/stream/${id}`);
    expectShape(envelope, StreamEnvelope);
    expect(envelope.json).toEqual({ status: "COMPLETED", stream: [] });
  });

  it("is held for its wait, clamped to 30 s, and refused if that is not a number", async () => {
    const id = await scene.running(endpoint, worker);
    const call = held(http.get(`${base}/stream/${id}?wait=99999999`));
    await sleeping(1);
    await scene.advance(29_999);
    expect(call.answer).toBeUndefined();
    await scene.advance(1);
    await scene.until(() => call.answer !== undefined);
    expect(call.answer!.json).toEqual([]);
    expect((await http.get(`${base}/stream/${id}?wait=abc`)).status).toBe(400);
    expect((await http.get(`${base}/stream/${id}?wait=-5`)).json).toEqual([]);
  });

  it("returns chunks again if a client did not wait for them", async () => {
    const id = await scene.running(endpoint, worker);
    const client = new AbortController();
    const call = http.get(`${base}/stream/${id}`, { signal: client.signal }).catch(() => undefined);
    await sleeping(1);
    await scene.chunk(worker, id, { output: "a" });
    client.abort();
    await call;
    await sleeping(0);
    await scene.settle();
    await scene.done(worker, id);
    expect((await http.get(`${base}/stream/${id}`)).json).toMatchObject([{ output: "a" }]);
  });

  it("as events sends everything, ends with done, and resumes after Last-Event-ID", async () => {
    const id = await scene.running(endpoint, worker);
    for (const output of ["a", { b: 1 }]) await scene.chunk(worker, id, { output });
    await scene.done(worker, id, { output: [] });
    const headers = { accept: "text/event-stream" };
    const all = await http.get(`${base}/stream/${id}`, { headers });
    expect(all.headers.get("content-type")).toBe("text/event-stream");
    expect(all.text).toContain('event: chunk\nid: 1-0\ndata: {"output":"a","metrics":{"stream_index":0}}\n\n');
    expect(all.text).toContain("id: 1-1\n");
    expect(all.text).toMatch(/event: done\ndata: \{.*"status":"COMPLETED".*\}\n\n$/);
    const rest = await http.get(`${base}/stream/${id}`, { headers: { ...headers, "last-event-id": "1-0" } });
    expect(rest.text).not.toContain("id: 1-0\n");
    expect(rest.text).toContain("id: 1-1\n");
    expect((await http.get(`${base}/stream/nothing`, { headers })).json.code).toBe("JOB_NOT_FOUND");
  });
});

describe("Changes of jobs", () => {
  it("answer with the id and the new state", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.done(worker, id, { error: "no" });
    const retried = await http.post(`${base}/retry/${id}`);
    expectShape(retried, JobReference);
    expect(retried.json).toEqual({ id, status: "IN_QUEUE" });
    const cancelled = await http.post(`${base}/cancel/${id}`);
    expectShape(cancelled, JobReference);
    expect(cancelled.json).toEqual({ id, status: "CANCELLED" });
    await http.post(`${base}/run`, { input: {} });
    const purged = await http.post(`${base}/purge-queue`);
    expectShape(purged, PurgeResult);
    expect(purged.json).toEqual({ removed: 1, status: "completed" });
  });
});

describe("/health and /requests", () => {
  it("have their shapes", async () => {
    for (let n = 0; n < 3; n++) await scene.submit(endpoint);
    expectShape(await http.get(`${base}/health`), HealthBody);
    const first = await http.get(`${base}/requests?limit=2`);
    expectShape(first, RequestList);
    expect(first.json.requests).toHaveLength(2);
    const last = await http.get(`${base}/requests?limit=2&cursor=${first.json.nextCursor}`);
    expectShape(last, RequestList);
    expect([last.json.requests.length, "nextCursor" in last.json]).toEqual([1, false]);
    expect((await http.get(`${base}/requests?status=FAILED`)).json).toEqual({ requests: [] });
  });

  it.each(["limit=0", "limit=101", "limit=x", "status=DONE", "cursor=%2F", "cursor=", "cursor=zzz"])(
    "refuse /requests?%s",
    async (query) => {
      expect((await http.get(`${base}/requests?${query}`)).status).toBe(400);
    },
  );
});

it("/metrics is the health with the ids of the workers that are ready", async () => {
  const worker = await scene.worker(endpoint);
  await scene.running(endpoint, worker);
  const { json: health } = await http.get(`${base}/health`);
  const answer = await http.get(`${base}/metrics`);
  expectShape(answer, MetricsBody);
  expect(answer.json).toEqual({ ...health, readyWorkers: expect.arrayContaining([worker.row.id]) });
  expect(answer.json.readyWorkers).toHaveLength(health.workers.ready);
});
