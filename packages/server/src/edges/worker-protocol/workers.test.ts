import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import type { LiveWorker } from "../../memory/registry.js";
import { cancelJob } from "../../operations/jobs/change-job.js";
import { workerChanges } from "../../testing/facts-fixture.js";
import { type Answer, type Call, type Http, openHttp } from "../../testing/http-fixture.js";
import { secretOf } from "../../testing/scene-acts-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";

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

const asWorker = (method: string, path: string, more: Call = {}): Promise<Answer> =>
  http.call(method, `/v2/${endpoint.id}/${path}`, { key: secretOf(worker), ...more });
const take = (more = "") => asWorker("GET", `job-take/${worker.row.id}?gpu=cpu${more}`);
const done = (jobId: string, body: unknown) => asWorker("POST", `job-done/${worker.row.id}/${jobId}`, { body });
const sleeping = (count: number) => scene.until(() => scene.clock.sleeping === count);

describe("A worker's calls", () => {
  it("are recognised by its secret, bare or as a bearer, in the header or in the URL", async () => {
    const path = `ping/${worker.row.id}`;
    const secret = secretOf(worker);
    const known = [
      asWorker("GET", path),
      asWorker("GET", path, { key: null, headers: { authorization: secret } }),
      asWorker("GET", `${path}?token=${secret}`, { key: "the-user's-own-key" }),
    ];
    for (const call of known) expect((await call).status).toBe(200);
    const other = secretOf(await scene.worker(endpoint));
    for (const key of [null, "", "nonsense", scene.key, other]) {
      expect((await asWorker("GET", path, { key })).status).toBe(401);
    }
    const elsewhere = await scene.endpoint();
    expect((await http.get(`/v2/${elsewhere.id}/${path}`, { key: secret })).status).toBe(401);
  });

  it("give no access to anything else", async () => {
    const key = secretOf(worker);
    for (const path of [`/v2/${endpoint.id}/health`, "/v1/endpoints"]) {
      expect((await http.get(path, { key })).status).toBe(401);
    }
  });
});

describe("job-take", () => {
  it("answers with one job object: exactly what was given", async () => {
    const id = await scene.submit(endpoint, '{"input":{"a":1.0},"webhook":"https://example.com/"}');
    const answer = await take("&job_in_progress=0");
    expect([answer.status, answer.text]).toEqual([
      200,
      `{"id":"${id}","input":{"a":1.0},"webhook":"https://example.com/"}`,
    ]);
  });

  it("is held, and answers 204 with nothing after 20 s", async () => {
    const call = take();
    await sleeping(1);
    await scene.advance(20_000);
    const answer = await call;
    expect([answer.status, answer.text]).toEqual([204, ""]);
  });

  it("gives a batch as a list, even of one, and treats an invalid size as one", async () => {
    for (let n = 0; n < 4; n++) await scene.submit(endpoint);
    const batch = (size: string) => asWorker("GET", `job-take-batch/${worker.row.id}?batch_size=${size}`);
    expect((await batch("3")).json).toHaveLength(3);
    expect((await batch("x")).json).toHaveLength(1);
  });

  it("gives its jobs back, excused, when its client is gone", async () => {
    const client = new AbortController();
    const call = asWorker("GET", `job-take/${worker.row.id}`, { signal: client.signal }).catch(() => undefined);
    await sleeping(1);
    scene.during("jobs.take", () => client.abort());
    const id = await scene.submit(endpoint);
    await call;
    await scene.until(async () => (await scene.state(endpoint, id)) === "IN_QUEUE");
    expect(await scene.status(endpoint, id)).toMatchObject({ retries: 0 });
    await sleeping(0);
  });
});

describe("job-done and job-stream", () => {
  it("answer 200 to everything from a known worker", async () => {
    const id = await scene.running(endpoint, worker);
    const bodies = ["", "{no json", "[]", "null", Buffer.from([0xff]), '{"output":1}', '{"output":2}'];
    for (const body of bodies) {
      expect((await asWorker("POST", `job-stream/${worker.row.id}/${id}`, { body })).status).toBe(200);
      expect((await done("nothing", body)).status).toBe(200);
    }
    expect((await done(id, "NaN")).status).toBe(200);
    expect(await scene.status(endpoint, id)).toMatchObject({ status: "FAILED", error: expect.stringMatching(/JSON/) });
    expect((await done(id, '{"output":1}')).status).toBe(200);
    expect(await scene.state(endpoint, id)).toBe("FAILED");
  });

  it("keep equal chunks, but drop a repeat after a reply that could not be written", async () => {
    for (const output of ["a", "a".repeat(limits.bodyBytesSmall)]) await keepEqual(output);
  });

  async function keepEqual(output: string): Promise<void> {
    const id = await scene.running(endpoint, worker);
    const path = `/v2/${endpoint.id}/job-stream/${worker.row.id}/${id}`;
    const chunk = (to: Http, signal?: AbortSignal) =>
      to.post(path, { output }, { key: secretOf(worker), ...(signal ? { signal } : {}) });
    const client = new AbortController();
    const { chunks } = scene.parts;
    const append = async (...call: Parameters<typeof chunks.append>) => {
      const stored = await chunks.append(...call);
      client.abort();
      await gone;
      return stored;
    };
    const behind = await openHttp(scene, { chunks: { append } as never });
    const gone = new Promise((done) => {
      behind.app.server.once("connection", (socket) => socket.once("close", done));
    });
    await expect(chunk(behind, client.signal)).rejects.toThrow();
    await gone;
    await behind.close();
    for (let n = 0; n < 3; n++) expect((await chunk(http)).status).toBe(200);
    await done(id, { output: [] });
    const { json } = await http.get(`/v2/${endpoint.id}/stream/${id}`);
    expect(json.map((sent: { output: string }) => sent.output === output)).toEqual([true, true, true]);
  }

  it("read JSON under the content type that stock workers send", async () => {
    const id = await scene.running(endpoint, worker);
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const path = `job-done/${worker.row.id}/${id}?gpu=cpu&isStream=false`;
    expect((await asWorker("POST", path, { body: '{"output":1}', headers })).status).toBe(200);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
  });

  it("fail a job whose result is over the limit, and answer 200", async () => {
    const id = await scene.running(endpoint, worker);
    const body = `{"output":"${"x".repeat(limits.outputBytesMax)}"}`;
    expect((await done(id, body)).status).toBe(200);
    expect(await scene.status(endpoint, id)).toMatchObject({
      status: "FAILED",
      error: expect.stringContaining("20971520"),
    });
  });

  it("answer 503, and never 4xx, when the store cannot take it", async () => {
    const id = await scene.running(endpoint, worker);
    const { jobs } = scene.parts;
    const settle = () => Promise.reject(new Error("the disk is away"));
    const other = await openHttp(scene, { jobs: { change: jobs.change, progress: jobs.progress, settle } as never });
    const path = `/v2/${endpoint.id}/job-done/${worker.row.id}/${id}`;
    const answer = await other.post(path, { output: 1 }, { key: secretOf(worker) });
    await other.close();
    expect([answer.status, answer.json.code, answer.headers.get("retry-after")]).toEqual([503, "UNAVAILABLE", "1"]);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    expect((await done(id, { output: 1 })).status).toBe(200);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
  });

  it("accept a batch, each result judged separately", async () => {
    const ids = [await scene.submit(endpoint), await scene.submit(endpoint)];
    await scene.take(worker, { count: 2 });
    const body = [
      { id: ids[0], output: 1 },
      { id: ids[1], error: "no" },
    ];
    expect((await asWorker("POST", `job-done-batch/${worker.row.id}`, { body })).status).toBe(200);
    expect(await Promise.all(ids.map((id) => scene.state(endpoint, id)))).toEqual(["COMPLETED", "FAILED"]);
  });
});

describe("job-stop", () => {
  it("names the jobs to stop", async () => {
    const id = await scene.running(endpoint, worker);
    const call = asWorker("GET", `job-stop/${worker.row.id}`);
    await sleeping(1);
    await cancelJob(scene.parts, endpoint, id);
    expect((await call).json).toEqual({ jobsToStop: [id] });
  });
});

describe("A worker that has ended", () => {
  it("has its polls held, its results taken and dropped, and its pings refused", async () => {
    const id = await scene.running(endpoint, worker);
    await scene.parts.registry.changeWorker(worker, { ...workerChanges.end, endedAt: scene.clock.now() });
    worker.dismissed.abort();
    expect((await done(id, { output: 1 })).status).toBe(200);
    expect(await scene.state(endpoint, id)).toBe("IN_PROGRESS");
    expect((await asWorker("GET", `ping/${worker.row.id}`)).status).toBe(401);
    const polls = [take(), asWorker("GET", `job-stop/${worker.row.id}`)];
    await sleeping(2);
    await scene.advance(20_000);
    expect((await Promise.all(polls)).map(({ status }) => status)).toEqual([204, 204]);
  });
});

it("A ping lists the jobs in progress, comma-separated", async () => {
  const [kept, lost] = [await scene.submit(endpoint), await scene.submit(endpoint)];
  await scene.take(worker, { count: 2 });
  await scene.advance(5_000);
  for (let n = 0; n < 2; n++) {
    const answer = await asWorker("GET", `ping/${worker.row.id}?job_id=${kept},other&runpod_version=1.12`);
    expect(answer.status).toBe(200);
  }
  expect([await scene.state(endpoint, kept), await scene.state(endpoint, lost)]).toEqual(["IN_PROGRESS", "IN_QUEUE"]);
});

it("The reason that an unhealthy worker reports is kept", async () => {
  const query = "status=unhealthy&check=gpu&reason=no%20CUDA%20device";
  expect((await asWorker("GET", `ping/${worker.row.id}?${query}`)).status).toBe(200);
  expect(worker.row.exit?.note).toBe("gpu: no CUDA device");
});
