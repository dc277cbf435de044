import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { baseUrl, model, openAiClient, speakingEndpoint } from "./openai.js";
import { type Deployment, deploy, reached, removeFolders, type Said, script } from "./stock.js";

let server: TestServer;
/** The example's worker, for each of its output formats. */
let ways: Record<"raw text" | "raw text cut anywhere" | "objects", string>;
let speaking: Deployment;
let answering: Deployment;

beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" }, { sseKeepAliveMs: 4_000 });
  const [raw, cut, objects] = await Promise.all([
    speakingEndpoint(server),
    speakingEndpoint(server, { CUT: "7" }),
    speakingEndpoint(server, { RAW_OPENAI_OUTPUT: "0" }),
  ]);
  ways = { "raw text": raw, "raw text cut anywhere": cut, objects };
  [speaking, answering] = await Promise.all([
    deploy(server, "speaking", { workersMin: 1, idleTimeout: 120 }),
    deploy(server, "answering", { workersMin: 1, idleTimeout: 120 }),
  ]);
});

afterAll(async () => {
  await server?.end();
  removeFolders();
});

const asked = (content: string) => [{ role: "user" as const, content }];
const ask = { model, messages: asked("Tell me about the miller"), max_tokens: 12, seed: 7 };
const client = () => openAiClient(server, ways["raw text"]);
const lastJob = async (endpoint: string) =>
  (await call(server, "GET", `/v2/${endpoint}/requests?limit=1`)).body.requests[0];

/** The error with which a call was refused. */
async function refusalOf(deed: () => PromiseLike<unknown>): Promise<Said> {
  try {
    await deed();
  } catch (error) {
    return error;
  }
  throw new Error("it was not refused");
}

async function textOf(stream: AsyncIterable<Said>): Promise<string> {
  let text = "";
  for await (const { choices } of stream) text += choices[0]?.delta?.content ?? "";
  return text;
}

describe("OpenAI's JavaScript client", () => {
  it("lists the models, and reads one", async () => {
    const found = [];
    for await (const { id } of client().models.list()) found.push(id);
    expect(found).toEqual([model]);
    expect(await client().models.retrieve(model)).toMatchObject({ id: model, object: "model" });
  });

  it("asks for a chat completion", async () => {
    const completion = await client().chat.completions.create(ask);
    expect(completion).toMatchObject({ object: "chat.completion", model, choices: [{ index: 0 }] });
    expect(completion.choices[0]?.message.content).toMatch(/\w+ \w+/);
    expect(completion.usage?.completion_tokens).toBeLessThanOrEqual(12);
  });

  it.each(["raw text", "raw text cut anywhere", "objects"] as const)(
    "streams a chat completion of a worker that sends %s, with the same text as without streaming",
    async (way) => {
      const asking = openAiClient(server, ways[way]);
      const whole = await asking.chat.completions.create(ask);
      const stream = await asking.chat.completions.create({
        ...ask,
        stream: true,
        stream_options: { include_usage: true },
      });
      const chunks: Said[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      const text = chunks.map(({ choices }) => choices[0]?.delta?.content ?? "").join("");
      expect(text.trim()).toBe(whole.choices[0]?.message.content);
      expect(chunks.at(-2).choices[0].finish_reason).toBe(whole.choices[0]?.finish_reason);
      expect(chunks.at(-1).usage).toEqual(whole.usage);
      expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    },
  );

  it("streams by its helper that collects the chunks", async () => {
    const runner = client().chat.completions.stream(ask);
    const whole = await client().chat.completions.create(ask);
    expect((await runner.finalContent())?.trim()).toBe(whole.choices[0]?.message.content);
  });

  it("asks for a completion, whole and streamed", async () => {
    const asking = { model, prompt: "When the water", max_tokens: 9, seed: 3 };
    const whole = await client().completions.create(asking);
    let text = "";
    for await (const { choices } of await client().completions.create({ ...asking, stream: true }))
      text += choices[0]?.text;
    expect(text.trim()).toBe(whole.choices[0]?.text);
    expect(text).toMatch(/\w/);
  });

  it("gets embeddings, in the client's default encoding and as numbers", async () => {
    const input = ["the wheel of the mill", "the mill and its wheel", "sparks"];
    const packed = await client().embeddings.create({ model, input });
    const plain = await client().embeddings.create({ model, input, encoding_format: "float" });
    const vectors = packed.data.map(({ embedding }) => embedding);
    expect(vectors.map(({ length }) => length)).toEqual([64, 64, 64]);
    vectors.forEach((vector, at) => {
      const off = vector.map((value, n) => Math.abs(value - plain.data[at]!.embedding[n]!));
      expect(Math.max(...off)).toBeLessThan(1e-5);
    });
    const alike = (a: number, b: number) => vectors[a]!.reduce((sum, value, n) => sum + value * vectors[b]![n]!, 0);
    expect(alike(0, 1)).toBeGreaterThan(alike(0, 2));
  });

  it("is set to /sdk/v2 as well", async () => {
    const other = openAiClient(server, "", { baseURL: baseUrl(server, ways["raw text"], "/sdk") });
    expect((await other.models.list()).data.map(({ id }) => id)).toEqual([model]);
  });
});

describe("OpenAI's JavaScript client gets errors", () => {
  it("of a worker with their status, streaming or not", async () => {
    for (const stream of [false, true]) {
      const create = (body: object) => () => client().chat.completions.create({ ...ask, ...body, stream });
      const missing = await refusalOf(create({ model: "o'1" }));
      expect(missing).toBeInstanceOf(OpenAI.NotFoundError);
      expect(missing.message).toBe("404 The model 'o'1' doesn't exist; there is 'tiny-miller'.");
      expect([missing.type, missing.code, missing.param]).toEqual(["NotFoundError", 404, null]);
      expect(await refusalOf(create({ messages: [] }))).toBeInstanceOf(OpenAI.BadRequestError);
      expect(await refusalOf(create({ max_tokens: -1 }))).toBeInstanceOf(OpenAI.BadRequestError);
    }
  });

  it("of a handler that returns or raises them", async () => {
    const asking = openAiClient(server, answering.id);
    const say = (text: string) => () => asking.chat.completions.create({ model: "m", messages: asked(text) });
    const refused = await refusalOf(say("refuse"));
    expect(refused).toBeInstanceOf(OpenAI.UnprocessableEntityError);
    expect([refused.message, refused.param]).toEqual(["422 not that", "messages"]);
    const raised = await refusalOf(say("raise"));
    expect(raised).toBeInstanceOf(OpenAI.InternalServerError);
    expect(raised.message).toBe("500 cannot answer that");
  });

  it("for a wrong key and an unknown endpoint", async () => {
    const wrong = await refusalOf(() => openAiClient(server, ways.objects, { apiKey: "mr_wrong" }).models.list());
    expect(wrong).toBeInstanceOf(OpenAI.AuthenticationError);
    expect([wrong.code, wrong.requestID]).toEqual(["UNAUTHORIZED", expect.stringMatching(/./)]);
    const unknown = await refusalOf(() => openAiClient(server, "0123456789abcd").models.list());
    expect(unknown).toBeInstanceOf(OpenAI.NotFoundError);
    expect(unknown.code).toBe("ENDPOINT_NOT_FOUND");
  });

  it("in the middle of a stream, after the output before them", async () => {
    const asking = openAiClient(server, speaking.id);
    const stream = await asking.chat.completions.create({ model: "m", messages: asked("fail"), stream: true });
    const texts: Said[] = [];
    const error = await refusalOf(async () => {
      for await (const { choices } of stream) texts.push(choices[0]?.delta.content);
    });
    expect(texts).toEqual(["one", "two"]);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error.error).toEqual({ message: "it's over", type: "InternalError", param: null, code: 507 });
  });

  it("if the worker dies in the middle of a stream", async () => {
    const asking = openAiClient(server, speaking.id);
    const stream = await asking.chat.completions.create({ model: "m", messages: asked("die"), stream: true });
    const error = await refusalOf(() => textOf(stream));
    expect(error.code).toBe("WORKER_LOST");
    await until(async () => (await lastJob(speaking.id)).status === "CANCELLED");
  });
});

describe("A handler that does not stream", () => {
  it("answers a streaming client with one chunk", async () => {
    const asking = openAiClient(server, answering.id);
    const stream = await asking.chat.completions.create({ model: "m", messages: asked("hi"), stream: true });
    expect(await textOf(stream)).toBe("You said: hi");
  });
});

describe("A client that disconnects", () => {
  const hanging = async (more: object, options: object = {}) => {
    const already = speaking.notes().length;
    const sent = openAiClient(server, speaking.id).chat.completions.create(
      { model: "m", messages: asked("hang"), ...more } as never,
      options,
    );
    const outcome = Promise.resolve(sent).catch((error) => error);
    await until(() => speaking.notes().length > already, 60_000); // its worker may have to start first
    return { sent, outcome, job: await lastJob(speaking.id) };
  };

  it("by its own timeout has its job cancelled", async () => {
    const timeout = 3_600_000;
    const timers = vi.spyOn(globalThis, "setTimeout");
    const { outcome, job } = await hanging({}, { timeout });
    expect(job.status).toBe("IN_PROGRESS");
    const [strike] = timers.mock.calls.find(([, ms]) => ms === timeout) ?? [];
    timers.mockRestore();
    strike?.(); // the client's own timeout has passed
    expect(await outcome).toBeInstanceOf(OpenAI.APIConnectionTimeoutError);
    await reached(server, speaking.id, job.id, "CANCELLED");
  });

  it("by aborting a stream that it reads has its job cancelled, and the worker runs other jobs", async () => {
    const { outcome, job } = await hanging({ stream: true });
    const stream = (await outcome) as Awaited<ReturnType<OpenAI["chat"]["completions"]["create"]>> & {
      controller: AbortController;
    };
    stream.controller.abort();
    await reached(server, speaking.id, job.id, "CANCELLED");
    const next = await openAiClient(server, speaking.id).chat.completions.create({
      model: "m",
      messages: asked("speak"),
      stream: true,
    });
    expect(await textOf(next)).toBe("onetwo");
  });

  it("by leaving the loop over its stream has its job cancelled", async () => {
    const { outcome, job } = await hanging({ stream: true });
    for await (const _ of (await outcome) as AsyncIterable<Said>) break;
    await reached(server, speaking.id, job.id, "CANCELLED");
  });

  it("before a worker takes its job has the job cancelled", async () => {
    const cold = await speakingEndpoint(server, {}, { workersMax: 0 });
    const leaving = new AbortController();
    const sent = openAiClient(server, cold).models.list({ signal: leaving.signal });
    const outcome = refusalOf(() => sent);
    const { id } = await until(() => lastJob(cold));
    leaving.abort();
    expect(await outcome).toBeInstanceOf(OpenAI.APIUserAbortError);
    await reached(server, cold, id, "CANCELLED");
  });
});

describe("While a model loads", () => {
  it("a client waits, even if its worker neither pings nor polls", async () => {
    const cold = await speakingEndpoint(server, { LOAD_SECONDS: "4" }, { workersMin: 0 });
    const stream = await openAiClient(server, cold).chat.completions.create({ ...ask, stream: true });
    expect(await textOf(stream)).toMatch(/\w/);
  });

  it("both clients accept the comments that keep a stream alive", async () => {
    const body = { model: "m", messages: asked("wait 5"), stream: true as const };
    const headers = { authorization: `Bearer ${server.key}` };
    const address = `${baseUrl(server, speaking.id)}/chat/completions`;
    const [raw, text, python] = await Promise.all([
      fetch(address, { method: "POST", headers, body: JSON.stringify(body) }).then((reply) => reply.text()),
      openAiClient(server, speaking.id).chat.completions.create(body).then(textOf),
      script(server, "openai_client", "quiet", baseUrl(server, speaking.id)),
    ]);
    expect(raw).toMatch(/^: keep-alive\n\ndata: /);
    expect([text, python]).toEqual(["onetwo", "onetwo"]);
  });
});
