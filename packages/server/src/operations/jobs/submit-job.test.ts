import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { limits } from "../../limits/index.js";
import { refused, Scene } from "../../testing/scene-fixture.js";
import { deleteEndpoint } from "../endpoints/save-endpoint.js";
import { submitJob } from "./submit-job.js";
import { lendJobs } from "./take-jobs.js";

const minute = 60_000;
const hour = 60 * minute;

let scene: Scene;
let endpoint: Endpoint;
beforeEach(async () => {
  scene = await Scene.open();
  endpoint = await scene.endpoint();
});
afterEach(() => scene.close());

const submit = (body: unknown, more: Parameters<Scene["submit"]>[2] = {}) =>
  submitJob(scene.parts, scene.submission(endpoint, body, more));

describe("A submission", () => {
  it("is refused while as many jobs wait as its user may have, even if all of them arrive at once", async () => {
    const other = await scene.endpoint();
    await scene.submit(other);
    await scene.quotas({ queuedJobs: 8 });
    const attempts = await Promise.allSettled(Array.from({ length: 20 }, () => submit({ input: {} })));
    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(7);
    expect((await scene.health(endpoint)).waiting).toBe(7);
    expect(await scene.take(await scene.worker(endpoint))).toHaveLength(1);
    await refused(submit({ input: {} }), "QUEUE_FULL");
    await scene.advance(limits.queueRoomKnownMs);
    await submit({ input: {} });
    await refused(submit({ input: {} }), "QUEUE_FULL");
  });

  it("counts its user's queue by one read for many submissions", async () => {
    await scene.quotas({ queuedJobs: 1_000 });
    const count = vi.spyOn(scene.parts.tallies, "waiting");
    for (let n = 0; n < 20; n++) await submit({ input: {} });
    expect(count).toHaveBeenCalledTimes(1);
  });

  it("waits in the queue under an id of its route", async () => {
    const run = await scene.submit(endpoint);
    const runsync = await scene.submit(endpoint, { input: {} }, { route: "runsync" });
    const uuid = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
    expect(run).toMatch(new RegExp(`^${uuid}-u1$`));
    expect(runsync).toMatch(new RegExp(`^sync-${uuid}-u1$`));
    expect(await scene.status(endpoint, run)).toMatchObject({
      id: run,
      status: "IN_QUEUE",
      delayTime: 0,
      executionTime: 0,
      workerId: "",
      retries: 0,
      queuePosition: 0,
    });
  });

  it("reaches its worker as the text it arrived as, with the fields sent beside it and nothing else", async () => {
    const input = '{"b": 1.00, "a": "\\u00e9", "__proto__": {"x": 12345678901234567890}}';
    const s3Config = '{"accessId":"me","accessSecret":"hidden","region":"eu"}';
    const body = `{"webhook":"https://example.com/hook","more":1,"input":${input},"policy":{"ttl": 60000},"s3Config":${s3Config}}`;
    const id = await scene.submit(endpoint, body);
    const worker = await scene.worker(endpoint);
    const [job] = await scene.take(worker);
    expect((await lendJobs(scene.parts, 1, [job!], scene.stays))?.pieces.join("")).toBe(
      `{"id":"${id}","input":${input},"webhook":"https://example.com/hook","s3Config":${s3Config},"policy":{"ttl": 60000}}`,
    );
  });

  it("stores the access secret encrypted, and keeps it out of the status", async () => {
    const id = await scene.submit(endpoint, { input: {}, s3Config: { accessSecret: "very hidden" } });
    const job = await scene.stores.reader.find({ endpointNo: endpoint.no, jobId: id, now: scene.clock.now() });
    const stored = await scene.stores.reader.submission(job!.no);
    expect(stored!.s3Config).toBeDefined();
    expect(stored!.s3Config).not.toContain("hidden");
    expect(JSON.stringify(await scene.status(endpoint, id))).not.toContain("hidden");
  });

  it.each([
    ["an empty body", "", "INVALID_JSON", /not valid JSON/],
    ["no JSON", "{input: 1}", "INVALID_JSON", /position 1/],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), "INVALID_JSON", /UTF-8/],
    ["NaN", '{"input":{"a":NaN}}', "INVALID_JSON", /position/],
    ["JSON nested too deep", `{"input":${'{"a":'.repeat(501)}1${"}".repeat(501)}}`, "INVALID_JSON", /./],
    ["an array", "[]", "INVALID_INPUT", /must be a JSON object/],
    ["a string", '"input"', "INVALID_INPUT", /must be a JSON object/],
    ["no input", "{}", "INVALID_INPUT", /'input' is missing/],
    ["a null input", '{"input":null}', "INVALID_INPUT", /'input' is not/],
    ["an array as input", '{"input":[1]}', "INVALID_INPUT", /'input' is not/],
    ["a text as input", '{"input":"x"}', "INVALID_INPUT", /'input' is not/],
    ["a number as input", '{"input":7}', "INVALID_INPUT", /'input' is not/],
  ] as const)("of %s is refused", async (_, body, code, words) => {
    await refused(submit(body), code, words);
    expect((await scene.health(endpoint)).waiting).toBe(0);
  });

  it.each([
    ["webhook", 7, /'webhook' must be an http/],
    ["webhook", "example.com", /'webhook'/],
    ["webhook", "ftp://example.com", /'webhook'/],
    ["webhook", `https://example.com/${"x".repeat(limits.webhookUrlCharsMax)}`, /'webhook'/],
    ["policy", [], /'policy' must be a JSON object/],
    ["policy", "fast", /'policy'/],
    ["policy", { executionTimeout: 4_999 }, /'policy.executionTimeout'.*5000 to 604800000/],
    ["policy", { executionTimeout: 604_800_001 }, /'policy.executionTimeout'/],
    ["policy", { executionTimeout: 5_000.5 }, /'policy.executionTimeout'/],
    ["policy", { executionTimeout: "6000" }, /'policy.executionTimeout'/],
    ["policy", { ttl: 9_999 }, /'policy.ttl'.*10000 to 604800000/],
    ["policy", { ttl: 604_800_001 }, /'policy.ttl'/],
    ["policy", { lowPriority: "yes" }, /'policy.lowPriority'/],
    ["policy", { lowPriority: 1 }, /'policy.lowPriority'/],
    ["s3Config", "bucket", /'s3Config' must be a JSON object/],
    ["s3Config", { bucketName: 7 }, /'s3Config.bucketName' must be a string/],
    ["s3Config", { accessSecret: null }, /'s3Config.accessSecret'/],
  ])("is refused, naming the field, when '%s' is %j", async (field, value, words) => {
    await refused(submit({ input: {}, [field]: value }), "INVALID_INPUT", words);
  });

  it.each(["policy", "s3Config"])("is refused, naming the bound, when '%s' is too long", async (field) => {
    const long = { input: {}, [field]: { more: "x".repeat(limits.jobFieldBytesMax) } };
    await refused(submit(long), "INVALID_INPUT", new RegExp(`'${field}' is longer than 16384 bytes`));
  });

  it.each([
    ["webhook", "é"],
    ["policy", "é"],
    ["s3Config", "é"],
    ["webhook", { a: [] }],
    ["policy", { a: "é" }],
    ["s3Config", { a: "é" }],
  ])("with a very long %s (%j) is refused without converting it to text", async (field, value) => {
    const long = JSON.stringify(value).replace(/é|\[\]/, (piece) =>
      piece === "é" ? "é".repeat(100_000) : `[${"[],".repeat(50_000)}1]`,
    );
    const body = scene.submission(endpoint, `{"input":{},"${field}":${long}}`);
    const texts = vi.spyOn(Buffer.prototype, "toString");
    await refused(submitJob(scene.parts, body), "INVALID_INPUT", new RegExp(`'${field}'`));
    expect(texts.mock.results.map(({ value }) => value.length).filter((length) => length > 10_000)).toEqual([]);
    texts.mockRestore();
  });

  it("accepts the bounds themselves, and null for an absent field", async () => {
    const bounds = [
      { executionTimeout: 5_000, ttl: 10_000 },
      { executionTimeout: 604_800_000, ttl: 604_800_000, lowPriority: true },
      { executionTimeout: null, ttl: null, lowPriority: null },
    ];
    for (const policy of bounds) await scene.submit(endpoint, { input: {}, policy });
    await scene.submit(endpoint, { input: {}, policy: null, webhook: null, s3Config: null });
    expect(await scene.health(endpoint)).toMatchObject({ waiting: 4, waitingNormal: 3 });
  });

  it("to an endpoint that was deleted meanwhile is refused as to an unknown one", async () => {
    await deleteEndpoint(scene.parts, scene.admin, endpoint, { setToZero: true });
    await refused(submit({ input: {} }), "ENDPOINT_NOT_FOUND");
  });

  it("has the endpoint's executionTimeout if it names none itself", async () => {
    const slow = await scene.endpoint({ executionTimeoutMs: 20_000 });
    const worker = await scene.worker(slow);
    await scene.submit(slow, { input: {} });
    await scene.submit(slow, { input: {}, policy: { executionTimeout: 7_000 } });
    const jobs = await scene.take(worker, { count: 2 });
    expect(jobs.map(({ deadlineAt, takenAt }) => deadlineAt - takenAt)).toEqual([20_000, 7_000]);
  });
});

describe("An Idempotency-Key", () => {
  const key = { idempotencyKey: "order-1" };

  it("gives the same job again for 24 h, and a new one afterwards", async () => {
    const long = { input: {}, policy: { ttl: 604_800_000 } };
    const first = await submit(long, key);
    await scene.advance(24 * hour - 1);
    expect(await submit(long, key)).toMatchObject({ jobId: first.jobId, known: { lastStatus: "IN_QUEUE" } });
    expect((await scene.health(endpoint)).waiting).toBe(1);
    await scene.advance(1);
    const second = await submit(long, key);
    expect(second.jobId).not.toBe(first.jobId);
    expect(second.known).toBeUndefined();
    expect((await scene.health(endpoint)).waiting).toBe(2);
  });

  it("makes one job from simultaneous submissions", async () => {
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => submit({ input: {} }, key)));
    expect(new Set(outcomes.map(({ jobId }) => jobId)).size).toBe(1);
    expect((await scene.health(endpoint)).waiting).toBe(1);
  });

  it("returns the last status of a job that has expired and was deleted", async () => {
    scene.run(scene.loops.expire());
    const worker = await scene.worker(endpoint);
    const id = await scene.running(endpoint, worker, { input: {} }, key);
    await scene.done(worker, id);
    await scene.advance(31 * minute);
    expect(await scene.state(endpoint, id)).toBe("gone");
    expect(await submit({ input: {} }, key)).toMatchObject({ jobId: id, known: { lastStatus: "COMPLETED" } });
  });

  it("stands for the same job after a restart", async () => {
    const { jobId } = await submit({ input: {} }, key);
    scene = await scene.restart();
    expect((await submit({ input: {} }, key)).jobId).toBe(jobId);
  });

  it("is refused with another body, and with another route", async () => {
    await submit({ input: {} }, key);
    await refused(submit({ input: { a: 1 } }, key), "IDEMPOTENCY_CONFLICT", /another body/);
    await refused(submit('{"input": {}}', key), "IDEMPOTENCY_CONFLICT", /another body/);
    await refused(submit({ input: {} }, { ...key, route: "runsync" }), "IDEMPOTENCY_CONFLICT", /another route/);
  });

  it("belongs to its endpoint", async () => {
    const other = await scene.endpoint();
    const first = await submit({ input: {} }, key);
    expect(await scene.submit(other, { input: {} }, key)).not.toBe(first.jobId);
  });

  it("of a refused submission is not stored", async () => {
    await refused(submit({ input: 1 }, key), "INVALID_INPUT");
    expect((await submit({ input: {} }, key)).known).toBeUndefined();
  });

  it.each([
    ["empty", ""],
    ["too long", "x".repeat(256)],
    ["with a blank", "a b"],
    ["not ASCII", "é"],
    ["with a control character", "a\x7f"],
  ])("that is %s is refused", async (_, idempotencyKey) => {
    await refused(submit({ input: {} }, { idempotencyKey }), "INVALID_INPUT", /Idempotency-Key/);
  });

  it("of 255 visible characters is accepted", async () => {
    expect(await submit({ input: {} }, { idempotencyKey: "~".repeat(255) })).toHaveProperty("jobId");
  });
});

describe("After its end a job is kept", () => {
  it.each([
    ["of /run: 30 minutes", { route: "run" }, 30 * minute],
    ["of /runsync: 1 minute", { route: "runsync" }, minute],
    ["of /runsync with wait=1000: 1 minute", { route: "runsync", waitMs: 1_000 }, minute],
    ["of /runsync with wait=150000: 2.5 minutes", { route: "runsync", waitMs: 150_000 }, 150_000],
    ["of /runsync with wait=300000: 5 minutes", { route: "runsync", waitMs: 300_000 }, 5 * minute],
  ] as const)("%s", async (_, how, keptMs) => {
    const worker = await scene.worker(endpoint);
    const id = await scene.running(endpoint, worker, { input: {} }, how);
    await scene.advance(100_000);
    await scene.done(worker, id);
    await scene.advance(keptMs - 1);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    await scene.advance(1);
    await refused(scene.status(endpoint, id), "JOB_NOT_FOUND");
  });

  it("never longer than its ttl", async () => {
    const worker = await scene.worker(endpoint);
    const id = await scene.running(endpoint, worker, { input: {}, policy: { ttl: 120_000 } });
    await scene.advance(60_000);
    await scene.done(worker, id);
    await scene.advance(59_999);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    await scene.advance(1);
    expect(await scene.state(endpoint, id)).toBe("gone");
  });
});
