import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import type { ClientTable } from "./client-table.js";
import { pythonWithLangChain } from "./environments/machine-python.js";
import { runScript } from "./environments/python-scripts.js";
import { clientPackage } from "./npm-clients.js";
import { baseUrl, model, openAiClient, speakingEndpoint } from "./openai.js";
import { expectOutcomes, type Finding } from "./outcomes.js";
import { queueCalls } from "./queue-calls.js";
import { type Deployment, deploy, jsClient, python, removeFolders, type Said, waitingEndpoint } from "./stock.js";

let server: TestServer;
let plain: Deployment;
let streaming: Deployment;
let media: Deployment;
/** The example's worker, which speaks OpenAI's interface. */
let speaking: string;
/** An endpoint without workers: its jobs wait. */
let idle: string;
/** Where the files are that the worker of `media` names. */
const files = createServer((_, reply) => void reply.end("the file's bytes"));

beforeAll(async () => {
  await new Promise<void>((done) => files.listen(0, "127.0.0.1", done));
  const address = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  const warm = { workersMin: 1, idleTimeout: 120 };
  [plain, streaming, media, speaking] = await Promise.all([
    deploy(server, "plain", warm),
    deploy(server, "streaming", warm),
    deploy(server, "media", warm, { FILES: address }),
    speakingEndpoint(server),
  ]);
  idle = await waitingEndpoint(server);
});
afterAll(async () => {
  await server?.end();
  files.close();
  removeFolders();
});

/** Makes each call of a table, and expects what the table says; resolves with what the calls gave. */
async function made(table: ClientTable, deeds: Readonly<Record<string, () => PromiseLike<unknown>>>) {
  const found: Record<string, Finding> = {};
  for (const [call, deed] of Object.entries(deeds)) {
    try {
      found[call] = { gave: await deed() };
    } catch (error) {
      found[call] = { error: String(error) };
    }
  }
  expectOutcomes(table, found);
  return Object.fromEntries(Object.entries(found).map(([call, { gave }]) => [call, gave]));
}

async function all<T>(parts: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const part of parts) found.push(part);
  return found;
}

describe("Each call of", () => {
  it("the stock JavaScript client", async () => {
    const [quick, streamed, waiting] = [plain.id, streaming.id, idle].map((id) => jsClient(server, id)) as [
      Said,
      Said,
      Said,
    ];
    const echo = { input: { do: "echo", n: 1 } };
    const { id } = await quick.run(echo);
    const gave = await made(queueCalls.js, {
      run: () => quick.run(echo),
      runSync: () => quick.runSync(echo, 40_000),
      statusSync: () => quick.statusSync(id, 40_000),
      status: () => quick.status(id),
      stream: async () => all(streamed.stream((await streamed.run({ input: { values: [1, 2] } })).id)),
      cancel: async () => waiting.cancel((await waiting.run(echo)).id),
      purgeQueue: () => waiting.run(echo).then(() => waiting.purgeQueue()),
      health: () => waiting.health(),
    });
    expect(gave).toMatchObject({
      run: { id: expect.any(String), status: "IN_QUEUE" },
      runSync: { status: "COMPLETED", output: echo.input },
      statusSync: { id, status: "COMPLETED", output: echo.input },
      status: { id, status: "COMPLETED", output: echo.input },
      stream: [{ output: 1 }, { output: 2 }],
      cancel: { status: "CANCELLED" },
      purgeQueue: { removed: 1, status: "completed" },
      health: { jobs: { inQueue: 0 }, workers: { running: 0 } },
    });
  });

  it("the stock Python clients", async () => {
    const found = await runScript(python(), "queue_calls", {
      env: { CLIENT_KEY: server.key, RUNPOD_ENDPOINT_BASE_URL: `${server.url}/sdk/v2` },
      words: [plain.id, streaming.id, idle],
    });
    expectOutcomes(queueCalls.python, found);
    const gave = (call: string) => found[call].gave;
    expect([gave("Endpoint.run_sync"), gave("Job.output"), gave("AsyncioJob.output")]).toEqual([
      { do: "echo", n: 2 },
      { do: "echo", n: 1 },
      { do: "echo", n: 5 },
    ]);
    expect([gave("Job.status"), gave("AsyncioJob.status")]).toEqual(["COMPLETED", "COMPLETED"]);
    expect([gave("Job.stream"), gave("AsyncioJob.stream")]).toEqual([
      [1, 2],
      [3, 4],
    ]);
    for (const of of ["", "Asyncio"]) {
      expect(gave(`${of}Job.cancel`)).toMatchObject({ status: "CANCELLED" });
      expect(gave(`${of}Endpoint.purge_queue`)).toMatchObject({ removed: 1 });
      expect(gave(`${of}Endpoint.health`)).toMatchObject({ jobs: { failed: 0 }, workers: { throttled: 0 } });
    }
  });

  it("OpenAI's JavaScript client", async () => {
    const client = openAiClient(server, speaking);
    // the example trims whole texts alone
    const whole = (parts: readonly (string | null | undefined)[]) => parts.join("").trim();
    const messages = [{ role: "user" as const, content: "Tell me about the miller" }];
    const chat = { model, messages, max_tokens: 5, seed: 7 };
    const plainly = { model, prompt: "The miller", max_tokens: 5, seed: 7 };
    const gave = await made(queueCalls.openAi, {
      "models.list": async () => (await all(client.models.list())).map(({ id }) => id),
      "models.retrieve": () => client.models.retrieve(model),
      "chat.completions.create": async () => (await client.chat.completions.create(chat)).choices[0]?.message.content,
      "chat.completions.create, streamed": async () =>
        whole(
          (await all(await client.chat.completions.create({ ...chat, stream: true }))).map(
            ({ choices }) => choices[0]?.delta.content,
          ),
        ),
      "completions.create": async () => (await client.completions.create(plainly)).choices[0]?.text,
      "completions.create, streamed": async () =>
        whole(
          (await all(await client.completions.create({ ...plainly, stream: true }))).map(
            ({ choices }) => choices[0]?.text,
          ),
        ),
    });
    expect(gave["models.list"]).toEqual([model]);
    expect(gave["chat.completions.create"]).toMatch(/\w/);
    expect(gave["chat.completions.create, streamed"]).toBe(gave["chat.completions.create"]);
    expect(gave["completions.create"]).toMatch(/\w/);
    expect(gave["completions.create, streamed"]).toBe(gave["completions.create"]);
  });

  it("the AI SDK's provider", async () => {
    Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
    const [ai, { createRunpod }] = await Promise.all([clientPackage("ai"), clientPackage("@runpod/ai-sdk-provider")]);
    const at = (baseURL: string) => createRunpod({ apiKey: server.key, baseURL });
    const [text, whole] = [at(baseUrl(server, speaking)), `${server.url}/v2/${media.id}`];
    const ask = { prompt: "Tell me about the miller", maxOutputTokens: 5, maxRetries: 0 };
    const providerOptions = { runpod: { pollIntervalMillis: 200 } };
    const gave: Said = await made(queueCalls.aiSdk, {
      generateText: async () => (await ai.generateText({ model: text(model), ...ask })).text,
      streamText: async () => (await all(ai.streamText({ model: text(model), ...ask }).textStream)).join(""),
      "generateText, completion": async () =>
        (await ai.generateText({ model: text.completionModel(model), ...ask })).text,
      generateImage: async () =>
        (await ai.generateImage({ model: at(whole).image("any/model"), prompt: "a mill" })).image,
      generateSpeech: async () => (await ai.generateSpeech({ model: at(whole).speech(whole), text: "Hello" })).audio,
      transcribe: async () =>
        (await ai.transcribe({ model: at(whole).transcription(whole), audio: wave, providerOptions })).text,
      generateVideo: async () => {
        const video = { model: at(whole).video(whole), prompt: "a mill", providerOptions };
        return (
          await at(whole)
            .video(whole)
            .doGenerate({ ...video, n: 1 })
        ).videos;
      },
    });
    const bytes = new TextEncoder().encode("the file's bytes");
    expect(gave.generateText).toMatch(/\w/);
    expect(gave.streamText).toMatch(/\w/);
    expect(gave["generateText, completion"]).toMatch(/\w/);
    expect([gave.generateImage.uint8Array, gave.generateSpeech.uint8Array]).toEqual([bytes, bytes]);
    expect(gave.transcribe).toBe("what was heard");
    expect(gave.generateVideo).toMatchObject([{ type: "url", url: expect.stringMatching(/made\.mp4$/) }]);
  });

  it("LangChain's models", async () => {
    const found = await runScript(pythonWithLangChain(), "langchain_client", {
      env: { CLIENT_KEY: server.key, BASE: `${server.url}/sdk/v2` },
      words: [media.id],
    });
    expectOutcomes(queueCalls.langchain, found);
    const texts = Object.values<Finding>(found).map(({ gave }) => gave);
    expect(texts).toEqual(Array(8).fill("what was heard"));
  });
});

/** A second of silence. */
const wave = Buffer.concat([
  Buffer.from(
    "RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\x1f\0\0",
    "latin1",
  ),
  Buffer.alloc(8_000, 0x80),
]);
