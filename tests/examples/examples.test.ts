import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { venv } from "../compat/stock.js";
import { call, makeEndpoint, root, startServer, type TestServer, until } from "../harness.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.end());

const example = (name: string) => join(root, "examples", name);
const runsync = async (endpoint: string, input: unknown) =>
  (await call(server, "POST", `/v2/${endpoint}/runsync`, { input })).body;

describe.concurrent("each example answers as its page says:", () => {
  it("hello greets", async () => {
    const endpoint = await makeEndpoint(server, example("hello"));
    expect(await runsync(endpoint, { name: "Ada" })).toMatchObject({
      status: "COMPLETED",
      output: { greeting: "Hello, Ada!" },
    });
  });

  it("streaming hands out word by word, and the list at the end", async () => {
    const endpoint = await makeEndpoint(server, example("streaming"));
    const input = { text: "the mill grinds", pauseMs: 10 };
    const { id } = (await call(server, "POST", `/v2/${endpoint}/run`, { input })).body;
    const words: unknown[] = [];
    for (let status = ""; status !== "COMPLETED"; ) {
      const { body } = await call(server, "GET", `/sdk/v2/${endpoint}/stream/${id}`);
      words.push(...body.stream.map((chunk: { output: unknown }) => chunk.output));
      status = body.status;
    }
    expect(words).toEqual(["the", "mill", "grinds"]);
    expect((await call(server, "GET", `/v2/${endpoint}/status/${id}`)).body.output).toEqual(words);
  });

  it("python counts words with the stock package, and fails on a text without words", async () => {
    const command = [join(venv(), "bin/python"), "-u", "handler.py"];
    const endpoint = await makeEndpoint(server, example("python"), {}, { dockerStartCmd: command });
    expect(await runsync(endpoint, { text: "the mill and the stream" })).toMatchObject({
      status: "COMPLETED",
      output: { words: 5 },
    });
    expect(await runsync(endpoint, { text: "" })).toMatchObject({
      status: "FAILED",
      error: "input.text holds no words",
    });
  });

  it("openai speaks OpenAI's API, streaming on request", async () => {
    const command = [join(venv(), "bin/python"), "-u", "handler.py"];
    const env = { PYTHONDONTWRITEBYTECODE: "1" };
    const endpoint = await makeEndpoint(server, example("openai"), {}, { dockerStartCmd: command, env });
    const base = `/v2/${endpoint}/openai/v1`;
    const { body: models } = await call(server, "GET", `${base}/models`);
    expect(models.data).toMatchObject([{ id: "tiny-miller", object: "model" }]);
    const reply = await fetch(`${server.url}${base}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${server.key}` },
      body: JSON.stringify({
        model: "tiny-miller",
        messages: [{ role: "user", content: "Tell me about the miller" }],
        max_tokens: 20,
        stream: true,
      }),
    });
    expect(await reply.text()).toMatch(/^data: \{.*"content": " \w+".*data: \[DONE\]\n\n$/s);
  });

  it("cpu counts primes, shows its progress, and scales while jobs wait", async () => {
    const settings = { workersMax: 3, scalerType: "REQUEST_COUNT", scalerValue: 1, idleTimeout: 1 };
    const endpoint = await makeEndpoint(server, example("cpu"), settings);
    expect((await runsync(endpoint, { limit: 1_000_000 })).output).toMatchObject({ primes: 78_498 });
    const input = { limit: 3_000_000 };
    const ids = await Promise.all(
      Array.from({ length: 6 }, async () => (await call(server, "POST", `/v2/${endpoint}/run`, { input })).body.id),
    );
    const health = async () => (await call(server, "GET", `/v2/${endpoint}/health`)).body;
    expect(await until(async () => (await health()).workers.running === 3)).toBe(true);
    const statusOf = async (id: string) => (await call(server, "GET", `/v2/${endpoint}/status/${id}`)).body;
    await until(async () => {
      const all = await Promise.all(ids.map(statusOf));
      return all.every((job) => job.status === "COMPLETED");
    }, 50_000);
    const workers = new Set((await Promise.all(ids.map(statusOf))).map((job) => job.workerId));
    expect(workers.size).toBe(3);
    await until(async () => (await health()).workers.ready === 0);
  });

  const balanced = (name: string, dockerStartCmd: string[]) =>
    makeEndpoint(server, example(name), { type: "LB", idleTimeout: 60 }, { dockerStartCmd });
  const counted = async (endpoint: string) => {
    const reply = await fetch(`${server.url}/lb/${endpoint}/count?to=3`, { headers: { authorization: server.key } });
    expect(reply.headers.get("content-type")).toMatch(/^text\/event-stream/);
    return reply.text();
  };

  it("lb-fastify greets over its own routes, and counts event by event", async () => {
    const endpoint = await balanced("lb-fastify", ["node", "server.mjs"]);
    expect((await call(server, "GET", `/lb/${endpoint}/greet/Ada`)).body).toEqual({ greeting: "Hello, Ada!" });
    expect(await counted(endpoint)).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
  });

  it("lb-fastapi counts words over its own routes, and counts event by event", async () => {
    const endpoint = await balanced("lb-fastapi", [join(venv(), "bin/python"), "-u", "server.py"]);
    const label = { "content-type": "application/json" };
    const text = "the mill and the stream";
    expect((await call(server, "POST", `/lb/${endpoint}/words`, { text }, label)).body).toEqual({ words: 5 });
    expect(await counted(endpoint)).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
  });
});
