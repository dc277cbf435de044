import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { baseUrl, model, speakingEndpoint } from "./openai.js";
import { type Deployment, deploy, reached, removeFolders, script } from "./stock.js";

let server: TestServer;
let example: string;
let speaking: Deployment;

beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  [example, speaking] = await Promise.all([
    speakingEndpoint(server, { CUT: "11" }),
    deploy(server, "speaking", { workersMin: 1, idleTimeout: 120 }),
  ]);
});

afterAll(async () => {
  await server?.end();
  removeFolders();
});

const run = (scenario: string, endpoint = example) =>
  script(server, "openai_client", scenario, baseUrl(server, endpoint));
const jobsOf = async (endpoint: string) => (await call(server, "GET", `/v2/${endpoint}/requests`)).body.requests;

describe("OpenAI's Python client", () => {
  it("lists the models, and reads one", async () => {
    expect(await run("models")).toEqual({ list: [model], one: "model" });
  });

  it("asks for a chat completion, whole and streamed", async () => {
    const { whole, streamed, usages } = await run("chat");
    expect(whole).toMatch(/\w+ \w+/);
    expect(streamed).toBe(whole);
    expect(usages[1]).toEqual(usages[0]);
  });

  it("asks for a completion, whole and streamed", async () => {
    const { whole, streamed } = await run("completion");
    expect(whole).toMatch(/\w/);
    expect(streamed).toBe(whole);
  });

  it("gets embeddings, in the client's default encoding and as numbers", async () => {
    expect(await run("embeddings")).toEqual({ sizes: [64, 64], alike: true });
  });

  it("streams several answers at once under asyncio", async () => {
    const [one, same, other] = await run("in_asyncio");
    expect(one).toMatch(/\w/);
    expect(same).toBe(one);
    expect(other).not.toBe(one);
  });

  it("gets errors with their status, streaming or not", async () => {
    const missing = {
      kind: "NotFoundError",
      status: 404,
      code: "404", // the client turns it into a string
      type: "NotFoundError",
      message: "The model 'o'1' doesn't exist; there is 'tiny-miller'.",
    };
    expect(await run("errors")).toMatchObject({
      whole: missing,
      streamed: missing,
      bad: { kind: "BadRequestError", status: 400 },
      key: { kind: "AuthenticationError", status: 401, code: "UNAUTHORIZED" },
    });
  });

  it("gets errors in the middle of a stream, after the output before them", async () => {
    expect(await run("failing", speaking.id)).toEqual({
      texts: ["one", "two"],
      error: { kind: "APIError", status: null, code: "507", type: "InternalError", message: "it's over" },
    });
  });

  it("that reads to the end and closes at once leaves its jobs completed", async () => {
    expect(await run("complete")).toEqual(Array(8).fill(true));
    const states = await until(async () => {
      const found: string[] = (await jobsOf(example)).slice(0, 8).map(({ status }: { status: string }) => status);
      return !found.includes("IN_PROGRESS") && found;
    });
    expect(states).toEqual(Array(8).fill("COMPLETED"));
  });

  it.each(["timed_out", "left"])("that disconnects (%s) has its job cancelled", async (how) => {
    const found = await run(how, speaking.id);
    expect(found).toEqual(how === "left" ? "one" : expect.objectContaining({ kind: "APITimeoutError" }));
    const [job] = await jobsOf(speaking.id);
    await reached(server, speaking.id, job.id, "CANCELLED");
  });
});
