import * as api from "@millrace/api";
import type { TSchema } from "typebox";
import { Errors } from "typebox/value";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../../domain/endpoints/endpoint.js";
import { limits } from "../../../limits/index.js";
import { type Answer, type Http, openHttp } from "../../../testing/http-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
});
afterEach(async () => {
  await http.close();
  await scene.close();
});

const of = (path: string) => `/v1/endpoints/${endpoint.id}/${path}`;
const expectShape = (answer: Answer, schema: TSchema) => {
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  expect([...Errors(schema, answer.json)]).toEqual([]);
};
const iso = (ms: number) => new Date(ms).toISOString();

describe("GET /v1/endpoints/{id}/jobs/{jobId}", () => {
  it("tells when a job was submitted, taken and finished, and by which worker", async () => {
    const began = scene.clock.now();
    const worker = await scene.worker(endpoint);
    const webhook = "https://receiver.example/hook";
    const jobId = await scene.submit(endpoint, { input: { a: 1 }, webhook, policy: { lowPriority: true } });
    expect((await http.get(of(`jobs/${jobId}`))).json).toEqual({
      id: jobId,
      status: "IN_QUEUE",
      createdAt: iso(began),
      queuedAt: iso(began),
      expiresAt: expect.any(String),
      starts: 0,
      lowPriority: true,
      executionTimeoutMs: 600_000,
      inputBytes: 7,
      webhook,
      happened: [],
    });
    await scene.advance(5_000);
    await scene.take(worker);
    await scene.advance(1_000);
    await scene.done(worker, jobId);
    const told = await http.get(of(`jobs/${jobId}`));
    expectShape(told, api.JobStory);
    expect(told.json).toMatchObject({
      status: "COMPLETED",
      takenAt: iso(began + 5_000),
      finishedAt: iso(began + 6_000),
      starts: 1,
      workerId: worker.row.id,
    });
  });

  it("shows no webhook to a key of chosen endpoints", async () => {
    const jobId = await scene.submit(endpoint, { input: {}, webhook: "https://receiver.example/hook?token=secret" });
    await scene.addKey("mr_chosen", scene.admin.ownerNo, { kind: "endpoints", access: { [endpoint.id]: "read" } });
    const { status, text } = await http.get(of(`jobs/${jobId}`), { key: "mr_chosen" });
    expect(status).toBe(200);
    expect(text).not.toContain("token");
  });

  it("tells of retries, the last hundred of them", async () => {
    const worker = await scene.worker(endpoint);
    const jobId = await scene.submit(endpoint);
    for (let n = 0; n < limits.happeningsShown + 2; n++) {
      await scene.take(worker);
      await scene.done(worker, jobId, { error: "broken" });
      expect((await http.post(`/v2/${endpoint.id}/retry/${jobId}`)).status).toBe(200);
    }
    const { json } = await http.get(of(`jobs/${jobId}`));
    expect(json.happened).toHaveLength(limits.happeningsShown);
    expect(json.happened[0]).toEqual({ at: iso(scene.clock.now()), event: "retry", workerId: worker.row.id });
  });

  it.each(["", "/input"])("does not know a job of another endpoint, or one that never was%s", async (rest) => {
    const other = await scene.endpoint();
    const jobId = await scene.submit(other);
    for (const id of [jobId, "nothing"])
      expect(await http.get(of(`jobs/${id}${rest}`))).toMatchObject({ status: 404, json: { code: "JOB_NOT_FOUND" } });
  });
});

describe("GET /v1/endpoints/{id}/jobs/{jobId}/input", () => {
  it("is the text that was sent, whatever JavaScript makes of its numbers", async () => {
    const input = '{"big":12345678901234567890,"x":1e400}';
    const jobId = await scene.submit(endpoint, `{"input":${input}}`);
    const { status, text, headers } = await http.get(of(`jobs/${jobId}/input`));
    expect([status, text]).toEqual([200, input]);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
  });

  it("is lent if it is large, and given back", async () => {
    const input = JSON.stringify({ text: "x".repeat(3_000_000) });
    const jobId = await scene.submit(endpoint, `{"input":${input}}`);
    const { text } = await http.get(of(`jobs/${jobId}/input`));
    expect(text === input).toBe(true);
    expect(scene.parts.shares.heldBytes).toBe(0);
  });
});

describe("GET /v1/endpoints/{id}/timings", () => {
  it("has percentiles and medians over time of the jobs that a worker has taken", async () => {
    expect((await http.get(of("timings"))).json).toEqual({ jobs: 0, buckets: [] });
    const worker = await scene.worker(endpoint);
    for (const [waitMs, runMs, error] of [
      [1_000, 100, undefined],
      [3_000, 300, "broken"],
    ] as const) {
      const jobId = await scene.submit(endpoint);
      await scene.advance(waitMs);
      await scene.take(worker);
      await scene.advance(runMs);
      await scene.done(worker, jobId, error === undefined ? {} : { error });
    }
    await scene.submit(endpoint);
    const answer = await http.get(of("timings"));
    expectShape(answer, api.Timings);
    expect(answer.json).toMatchObject({
      jobs: 2,
      waitMs: { p50: 1_000, p90: 3_000, p99: 3_000 },
      executionMs: { p50: 100, p90: 300, p99: 300 },
      buckets: [
        { jobs: 1, failed: 0, waitMs: 1_000, executionMs: 100 },
        { jobs: 1, failed: 1, waitMs: 3_000, executionMs: 300 },
      ],
    });
  });
});

describe("GET /v1/endpoints/{id}/scaling/replay", () => {
  it("compares the present settings with others over the jobs that are kept", async () => {
    const worker = await scene.worker(endpoint);
    for (let n = 0; n < 4; n++) await scene.submit(endpoint);
    for (let n = 0; n < 4; n++) {
      const [job] = await scene.take(worker);
      await scene.advance(10_000);
      await scene.done(worker, job!.id);
    }
    const answer = await http.get(of("scaling/replay?workersMax=1"));
    expectShape(answer, api.ScalingReplay);
    const { jobs, present, changed } = answer.json;
    expect([jobs, changed.starts]).toEqual([4, 1]);
    expect(present.starts).toBeGreaterThan(1);
    expect(changed.waitP95Ms).toBeGreaterThan(present.waitP95Ms);
    expect(scene.now(endpoint).settings.workersMax).toBe(3);
  });

  it("replays fewer jobs with thousands of workers", async () => {
    const worker = await scene.worker(endpoint);
    for (let n = 0; n < 120; n++) {
      const jobId = await scene.submit(endpoint);
      await scene.take(worker);
      await scene.done(worker, jobId);
    }
    const counts = ["", "?workersMin=10000&workersMax=10000"].map(
      async (query) => (await http.get(of(`scaling/replay${query}`))).json.jobs,
    );
    expect(await Promise.all(counts)).toEqual([120, 100]);
  });

  it.each([
    "workersMax=-1",
    "workersMax=x",
    "idleTimeout=0",
    "scalerValue=1.5",
    "scalerType=NONE",
    "workersMin=10001",
    "workersMin=9",
  ])("refuses %s", async (query) => {
    expect((await http.get(of(`scaling/replay?${query}`))).status).toBe(400);
  });

  it("refuses a user who has several waiting, and nobody else", async () => {
    let go = () => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const all = [scene.parts.replays.do(0, () => held)];
    const asks = Array.from({ length: limits.replaysPerOwner + 1 }, () => http.get(of("scaling/replay")));
    await expect.poll(() => scene.parts.replays.waitingOf(endpoint.ownerNo)).toBe(limits.replaysPerOwner);
    expect(await Promise.race(asks)).toMatchObject({ status: 503, headers: expect.anything() });
    go();
    await Promise.all(all);
    const statuses = (await Promise.all(asks)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([...Array(limits.replaysPerOwner).fill(200), 503]);
  });
});

describe("GET /v1/hosts", () => {
  it("shows the machines with their GPUs, and who holds them only to those who may see it", async () => {
    const answer = await http.get("/v1/hosts");
    expectShape({ ...answer, json: answer.json[0] }, api.HostView);
    expect(answer.json).toHaveLength(1);
    expect(answer.json[0]).toMatchObject({ isAlive: true, workers: 0 });
    await scene.worker(endpoint);
    expect((await http.get("/v1/hosts")).json[0].workers).toBe(1);
    const { key, caller } = await scene.stranger();
    const countFor = async (key: string) => (await http.get("/v1/hosts", { key })).json[0].workers;
    expect(await countFor(key)).toBe(0); // a member counts its own
    const image = await scene.template({ imageName: "alpine:3" }, caller);
    await scene.worker(await scene.endpoint({ templateId: image.id }, caller));
    expect([await countFor(key), await countFor(scene.key)]).toEqual([1, 2]);
    await scene.addKey("mr_bound", scene.admin.ownerNo, { kind: "endpoints", access: { [endpoint.id]: "read" } });
    expect((await http.get("/v1/hosts", { key: "mr_bound" })).status).toBe(401);
  });
});
