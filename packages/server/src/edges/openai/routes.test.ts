import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import { Rates } from "../../rates.js";
import { type Answer, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { asked, askUnderSdk, base, chat, endpoint, http, openAsking, scene, worker } from "./asking-fixture.js";

openAsking();

async function answered(word: unknown, body: unknown = { model: "m" }): Promise<Answer> {
  const { answer, id } = await asked(body);
  await scene.done(worker, id, word);
  return answer;
}

const shape = { message: expect.stringMatching(/./), type: expect.stringMatching(/_error$/), param: null };

describe("A request", () => {
  it("becomes a job whose input names the route and holds the body unchanged", async () => {
    const body = '{"model": "m", "seed": 12345678901234567890,\n "temperature": 1e400}';
    const { answer, job } = await asked(body);
    expect(job.input).toBe(`{"openai_route":"${chat}","openai_input":${body}}`);
    await scene.done(worker, job.id, { output: { id: "cmpl" } });
    const { status, json, headers } = await answer;
    expect([status, json]).toEqual([200, { id: "cmpl" }]);
    expect(headers.get("x-job-id")).toBe(job.id);
  });

  it("of 19 MB is accepted and passed on whole", async () => {
    const body = JSON.stringify({ input: "x".repeat(19 * 2 ** 20), stream: false });
    const { answer, job } = await asked(body, { path: "/v1/embeddings" });
    const input = Buffer.concat((await scene.parts.reader.input(job.no))!.map((piece) => Buffer.from(piece)));
    expect(input.toString() === `{"openai_route":"/v1/embeddings","openai_input":${body}}`).toBe(true);
    await scene.done(worker, job.id, { output: { object: "list" } });
    expect((await answer).json).toEqual({ object: "list" });
  });

  it.each(["GET", "POST"])("by %s without a body has no openai_input", async (method) => {
    const { answer, job } = await asked(undefined, { method, path: "/v1/models/a%2Fb?limit=1" });
    expect(job.input).toBe('{"openai_route":"/v1/models/a/b"}');
    await scene.done(worker, job.id, { output: { object: "model" } });
    expect((await answer).json).toEqual({ object: "model" });
  });

  it("is held until its job is final, and then kept as long as the job of a runsync", async () => {
    const { answer, id } = await asked({});
    await scene.advance(9 * 60_000);
    await scene.done(worker, id, { output: { a: 1 } });
    expect((await answer).json).toEqual({ a: 1 });
    expect(id).toMatch(/^sync-/);
    await scene.advance(59_000);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
    await scene.advance(2_000);
    expect(await scene.state(endpoint, id)).toBe("gone");
  });

  it("is answered under /sdk/v2 alike", async () => {
    askUnderSdk();
    expect((await answered({ output: { a: 1 } })).json).toEqual({ a: 1 });
  });
});

describe("The answer", () => {
  it.each([
    { it: "is the output", output: { a: [1] }, text: '{"a":[1]}' },
    { it: "is the element of a list of one", output: [{ a: 1 }], text: '{"a":1}' },
    { it: "is a list of several as it is", output: [{ a: 1 }, 2], text: '[{"a":1},2]' },
    { it: "is an empty object if there is no output", output: null, text: "{}" },
  ])("$it", async ({ output, text }) => {
    const answer = await answered({ output });
    expect([answer.status, answer.text]).toEqual([200, text]);
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  });

  it("keeps numbers that JavaScript cannot represent", async () => {
    const answer = await answered(Buffer.from('{"output": [ {"n": 12345678901234567890} ]}'));
    expect(answer.text).toBe('{"n": 12345678901234567890}');
  });

  it("is the chunks if a worker streams without aggregating, with cut chunks joined", async () => {
    const { answer, id } = await asked({});
    await scene.chunk(worker, id, { output: { object: "list", pad: "x".repeat(2 * limits.chunkBytesMax) } });
    await scene.done(worker, id, { output: [] });
    expect((await answer).json).toEqual({ object: "list", pad: "x".repeat(2 * limits.chunkBytesMax) });
  });
});

describe("A job that fails", () => {
  it.each([
    {
      it: "by the text of a Python dict is answered with its code",
      word: {
        error: `{'object': 'error', 'message': "it's too long", 'type': 'BadRequestError', 'param': None, 'code': 400}`,
      },
      status: 400,
      error: { message: "it's too long", type: "BadRequestError", param: null, code: 400 },
    },
    {
      it: "by a sentence is 500",
      word: { error: "out of memory" },
      status: 500,
      error: { message: "out of memory", type: "server_error", param: null, code: "JOB_FAILED" },
    },
    {
      it: "in its output is answered with the code in it",
      word: { output: [{ object: "error", message: "no such model", type: "NotFoundError", param: null, code: 404 }] },
      status: 404,
      error: { message: "no such model", type: "NotFoundError", param: null, code: 404 },
    },
  ])("$it", async ({ word, status, error }) => {
    const answer = await answered(word);
    expect([answer.status, answer.json]).toEqual([status, { error }]);
  });

  it("by its timeout is 504, and not retryable", async () => {
    scene.run(scene.loops.timeOut());
    const { answer } = await asked({});
    await scene.advance(600_000);
    const { status, json, headers } = await answer;
    expect([status, json.error.code, headers.get("x-should-retry")]).toEqual([504, "JOB_TIMED_OUT", "false"]);
  });

  it("because another caller cancelled it is 409, and not retryable", async () => {
    const { answer, id } = await asked({});
    await http.post(`/v2/${endpoint.id}/cancel/${id}`);
    const { status, json, headers } = await answer;
    expect([status, json.error.code, headers.get("x-should-retry")]).toEqual([409, "JOB_CANCELLED", "false"]);
  });

  it("by its ttl is 504", async () => {
    const { answer, id } = await asked({});
    await http.get(`/v2/${endpoint.id}/status/${id}?ttl=10000`);
    await scene.advance(10_001);
    const { status, json } = await answer;
    expect([status, json.error.code]).toEqual([504, "JOB_EXPIRED"]);
  });
});

describe("A refusal has OpenAI's shape:", () => {
  it.each([
    { it: "401 without a key", status: 401, code: "UNAUTHORIZED", call: { key: null, body: {} } },
    { it: "400 for a body that is not JSON", status: 400, code: "INVALID_JSON", call: { body: "{" } },
    { it: "400 for a body that is not an object", status: 400, code: "INVALID_INPUT", call: { body: [1] } },
    { it: "405 for another method", status: 405, code: "METHOD_NOT_ALLOWED", method: "DELETE", call: {} },
    { it: "400 for a malformed address", status: 400, code: "INVALID_INPUT", path: "/v1/%zz", call: { body: {} } },
    { it: "404 for an unknown path", status: 404, code: "NOT_FOUND", path: "/", call: { body: {} } },
    {
      it: "400 for a malformed Idempotency-Key",
      status: 400,
      code: "INVALID_INPUT",
      call: { body: {}, headers: { "idempotency-key": "a b" } },
    },
    {
      it: "413 for more than 20 MB",
      status: 413,
      code: "PAYLOAD_TOO_LARGE",
      call: { body: Buffer.alloc(limits.openaiBytesMax + 1, "x") },
    },
  ])("$it", async ({ status, code, call, method = "POST", path = chat }) => {
    for (const prefix of ["", "/sdk"]) {
      const answer = await http.call(method, `${prefix}${base}${path}`, call);
      expect([answer.status, answer.json]).toEqual([status, { error: { ...shape, code } }]);
      expect(answer.headers.get("x-request-id")).toMatch(/./);
    }
    expect((await scene.health(endpoint)).waiting).toBe(0);
  });

  it("404 for another user's endpoint", async () => {
    const { key } = await scene.stranger();
    const answer = await http.post(`${base}${chat}`, {}, { key });
    expect([answer.status, answer.json]).toEqual([404, { error: { ...shape, code: "ENDPOINT_NOT_FOUND" } }]);
  });

  it.each(["%00", "%0a", "%7f"])("400 for a path with %s in it, and no job is made", async (control) => {
    const answer = await http.get(`${base}/v1/models/a${control}b`);
    expect([answer.status, answer.json.error.code]).toEqual([400, "INVALID_INPUT"]);
  });

  it("401 for a key that may only read, for a GET too: it would make a job", async () => {
    const key = "mr_reader-of-openai";
    await scene.addKey(key, scene.admin.ownerNo, { kind: "readOnly" });
    const answer = await http.get(`${base}/v1/models`, { key });
    expect([answer.status, answer.json]).toEqual([401, { error: { ...shape, code: "UNAUTHORIZED" } }]);
  });

  it("429 beyond 400 at once, GET and POST together, with Retry-After", async () => {
    const limited = await openHttp(scene, { rates: new Rates() });
    const leave = new AbortController();
    const path = `${base}/v1/models`;
    const held = Array.from({ length: 400 }, (_, n) =>
      (n % 2 ? limited.get(path, { signal: leave.signal }) : limited.post(path, {}, { signal: leave.signal })).catch(
        () => undefined,
      ),
    );
    await scene.until(async () => (await scene.health(endpoint)).waiting === 400);
    const answer = await limited.get(path);
    expect([answer.status, answer.json]).toEqual([429, { error: { ...shape, code: "RATE_LIMITED" } }]);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    leave.abort();
    await Promise.all(held);
    await scene.until(async () => (await scene.health(endpoint)).waiting === 0);
    await limited.close();
  });
});

describe("An Idempotency-Key", () => {
  const headers = { "idempotency-key": "once" };
  it("returns the first job's answer again, or only its last status once the job is gone", async () => {
    const { answer, id } = await asked({ n: 1 }, { headers });
    await scene.done(worker, id, { output: { a: 1 } });
    await answer;
    const again = () => http.post(`${base}${chat}`, { n: 1 }, { headers });
    expect((await again()).json).toEqual({ a: 1 });
    await scene.advance(61_000);
    expect((await again()).json).toEqual({ id, status: "COMPLETED", expired: true });
  });

  it("is refused for another body and for another route", async () => {
    const { answer, id } = await asked({ n: 1 }, { headers });
    await scene.done(worker, id);
    await answer;
    for (const [path, body] of [
      [`${base}${chat}`, { n: 2 }],
      [`${base}/v1/completions`, { n: 1 }],
      [`/v2/${endpoint.id}/run`, { input: {} }],
    ] as const) {
      const refused = await http.post(path, body, { headers });
      expect([refused.status, refused.json.error?.code ?? refused.json.code]).toEqual([400, "IDEMPOTENCY_CONFLICT"]);
    }
  });
});

it("A stopping service says so, and cancels jobs that no client could request again", async () => {
  const own = await Scene.open();
  const web = await openHttp(own);
  const place = await own.endpoint();
  const post = (headers: Record<string, string>) => web.post(`/v2/${place.id}/openai${chat}`, {}, { headers });
  const [plain, keyed] = [post({}), post({ "idempotency-key": "later" })];
  await own.until(async () => (await own.health(place)).waiting === 2);
  own.draining.abort();
  for (const answer of [await plain, await keyed]) {
    expect([answer.status, answer.json.error.code]).toEqual([503, "UNAVAILABLE"]);
    expect(answer.headers.get("retry-after")).toBe("5");
  }
  await own.until(async () => (await own.health(place)).waiting === 1);
  await web.close();
  await own.close();
});
