import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startServer, type TestServer, until } from "../harness.js";
import { type Ending, makeRunning } from "./handlers.js";
import { type Body, submit } from "./wire.js";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_STOP_GRACE: "3" });
});
afterAll(() => server?.end());

/**
 * Prints its input in every supported way: as a line of its job, as plain text, on stdout and stderr, and from the
 * environment.
 */
const talking = `
export default async (input, job) => {
  job.log.info(input.say);
  console.log("plain " + input.say);
  process.stderr.write("oh " + input.say + "\\n");
  if (input.leak) console.log("key " + process.env.RUNPOD_AI_API_KEY + " at " + process.env.RUNPOD_WEBHOOK_GET_JOB);
  if (input.tell) console.log(input.tell + " is " + process.env[input.tell] + ", " + (process.env[input.tell].length - 7) + " long");
  if (input.exit !== undefined) setTimeout(() => process.exit(input.exit), 0);
  return input.say;
};
`;

const talker = (test: Ending, settings: Record<string, unknown> = {}) =>
  makeRunning(test, server, { workersMax: 1, idleTimeout: 120, ...settings }, talking);
const lines = async (path: string): Promise<Body[]> => {
  const reply = await fetch(server.url + path, {
    headers: { authorization: `Bearer ${server.key}`, accept: "application/x-ndjson" },
  });
  expect(reply.status).toBe(200);
  return (await reply.text())
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
};
/** A log's lines, once one of them contains this text. */
const linesWith = (path: string, text: string): Promise<Body[]> =>
  until(async () => {
    const found = await lines(path);
    return found.some((line) => line.text?.includes(text)) && found;
  });
const ran = async (endpoint: string, input: unknown): Promise<Body> =>
  (await call(server, "POST", `/v2/${endpoint}/runsync?wait=60000`, { input })).body;

/** The events of a followed log, as they come. */
async function* events(path: string, lastId?: string): AsyncGenerator<{ event: string; id: string; data: Body }> {
  const leaving = new AbortController();
  const reply = await fetch(server.url + path, {
    signal: leaving.signal,
    headers: { authorization: `Bearer ${server.key}`, ...(lastId === undefined ? {} : { "last-event-id": lastId }) },
  });
  expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  let text = "";
  try {
    for await (const chunk of (reply.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        if (block.startsWith(":")) continue;
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
        yield { event: field("event"), id: field("id"), data: JSON.parse(field("data")) };
      }
    }
  } finally {
    leaving.abort();
  }
}

describe("workers' logs", () => {
  it("separate the lines of each job, with their pipe and time, and never show the worker's secret", async (test) => {
    const endpoint = await talker(test);
    const from = Date.now();
    const job = await ran(endpoint, { say: "héllo", leak: true });
    const found = await linesWith(`/v1/endpoints/${endpoint}/logs?tail=1000`, "key ");
    const { workerId } = job;
    const mine = found.filter((line) => line.jobId === job.id);
    expect(mine.find((line) => line.message === "héllo")).toMatchObject({ workerId, stream: "stdout", level: "INFO" });
    expect(found.find((line) => line.text === "plain héllo")).toMatchObject({ workerId, stream: "stdout" });
    expect(found.find((line) => line.text === "oh héllo")).toMatchObject({ workerId, stream: "stderr" });
    expect(found.find((line) => line.text.startsWith("key ")).text).toMatch(/^key \*\*\*\* at http.*token=\*\*\*\*$/);
    for (const { at } of found) {
      expect(Date.parse(at)).toBeGreaterThan(from - 60_000);
      expect(Date.parse(at)).toBeLessThan(Date.now() + 2_000);
    }
    const jobs = await lines(`/v1/workers/${workerId}/logs?jobId=${job.id}`);
    expect(jobs.length).toBeGreaterThan(0);
    expect(jobs).toEqual(mine);
  });

  it("never hold a secret of the worker's environment, neither as they are read nor on disk", async (test) => {
    const value = "hf_only-the-worker-knows";
    const secret = await call(server, "POST", "/v1/secrets", { name: "hub-token", value });
    expect(secret.status).toBe(200);
    test.onTestFinished(() => call(server, "DELETE", `/v1/secrets/${secret.body.id}`).then(() => {}));
    const endpoint = await talker(test, { env: { HUB_TOKEN: "Bearer {{ RUNPOD_SECRET_hub-token }}" } });
    const { workerId } = await ran(endpoint, { say: "x", tell: "HUB_TOKEN" });
    const found = await linesWith(`/v1/workers/${workerId}/logs`, "HUB_TOKEN is ");
    expect(found.find(({ text }) => text.startsWith("HUB_TOKEN")).text).toBe("HUB_TOKEN is Bearer ****, 24 long");
    const onDisk = readdirSync(server.dataDir, { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    );
    expect(onDisk.length).toBeGreaterThan(3);
    for (const { parentPath, name } of onDisk)
      expect(readFileSync(join(parentPath, name)).includes(value), name).toBe(false);
  });

  it("are plain text by default", async (test) => {
    const endpoint = await talker(test);
    const { workerId } = await ran(endpoint, { say: "there" });
    await linesWith(`/v1/workers/${workerId}/logs`, "oh there");
    const reply = await fetch(`${server.url}/v1/workers/${workerId}/logs?tail=1000`, {
      headers: { authorization: `Bearer ${server.key}` },
    });
    expect(await reply.text()).toMatch(new RegExp(`^\\S+Z ${workerId} stderr oh there$`, "m"));
  });

  it("can be followed from the last line seen to the worker's end, and read afterwards and after a restart", async (test) => {
    const endpoint = await talker(test);
    const { workerId } = await ran(endpoint, { say: "one" });
    const path = `/v1/workers/${workerId}/logs`;
    let seen = "";
    for await (const { event, id, data } of events(`${path}?follow=true`)) {
      if (event === "line" && data.text === "oh one") {
        seen = id;
        break;
      }
    }
    const heard: string[] = [];
    const following = (async () => {
      for await (const { event, data } of events(`${path}?follow=true`, seen)) {
        heard.push(event === "line" ? data.text : event);
      }
    })();
    await ran(endpoint, { say: "two" });
    await until(() => heard.includes("oh two"));
    await submit(server, endpoint, { say: "bye", exit: 3 });
    await following;
    expect(heard).toContain("oh bye");
    expect(heard).not.toContain("oh one");
    expect(heard.filter((text) => text === "plain two")).toHaveLength(1);
    expect(heard.at(-1)).toBe("end");
    const after = (await lines(`${path}?tail=10000`)).map(({ text }) => text);
    expect(after).toContain("oh bye");
    await server.stop();
    await server.restart();
    expect((await lines(`${path}?tail=10000`)).map(({ text }) => text)).toEqual(after);
  });

  it("of an endpoint continue from one worker to the next", async (test) => {
    const endpoint = await talker(test);
    const heard: Body[] = [];
    const reader = events(`/v1/endpoints/${endpoint}/logs?follow=true`);
    const following = (async () => {
      for await (const { event, data } of reader) {
        if (event === "line") heard.push(data);
        if (data.text === "oh second") break;
      }
    })();
    await ran(endpoint, { say: "first", exit: 0 });
    await ran(endpoint, { say: "second" });
    await following;
    const ofText = (text: string) => heard.find((line) => line.text === text);
    expect(ofText("oh first")).toBeDefined();
    const times = heard.map(({ at }) => Date.parse(at));
    expect(times).toEqual([...times].sort((one, other) => one - other));
  });

  it("of unknown workers are deleted when the server starts", async (test) => {
    const endpoint = await talker(test);
    const { workerId } = await ran(endpoint, { say: "here" });
    await linesWith(`/v1/workers/${workerId}/logs`, "oh here");
    const logs = join(server.dataDir, "logs");
    writeFileSync(join(logs, "unknown0000000.log"), "left\n");
    writeFileSync(join(logs, "unknown0000000.log.1"), "left\n");
    await server.stop();
    await server.restart();
    await until(() => !readdirSync(logs).some((name) => name.startsWith("unknown")));
    expect(existsSync(join(logs, `${workerId}.log`))).toBe(true);
  });
});
