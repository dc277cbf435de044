import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, makeEndpoint, startServer, type TestServer } from "../harness.js";
import { Scene } from "./scene.js";

const stallMaxMs = 250;
/** A stall of the server shows in every round; a stall of the machine does not. */
const rounds = 3;

let server: TestServer;
let scene: Scene;
let endpoint: string;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  scene = new Scene();
  endpoint = await makeEndpoint(server, scene.folder, { workersMax: 0 }, { dockerStartCmd: ["true"] });
});
afterAll(async () => {
  await server?.end();
  scene?.end();
});

const halfMillionKeys = () => Array.from({ length: 500_000 }, (_, n) => `"k${n}":0`).join(",");
const million = 1_000_000;

const bodies: { it: string; text: () => string }[] = [
  { it: "arrays nested a million deep", text: () => `{"input":${"[".repeat(million)}${"]".repeat(million)}}` },
  { it: "objects nested a million deep", text: () => `{"input":${'{"a":'.repeat(million)}1${"}".repeat(million)}}` },
  { it: "half a million keys in the input", text: () => `{"input":{${halfMillionKeys()}}}` },
  { it: "half a million keys beside the input", text: () => `{"input":{},${halfMillionKeys()}}` },
  { it: "half a million objects of one key", text: () => `{"input":{"a":[${'{"a":0},'.repeat(500_000)}0]}}` },
  { it: "ten megabytes of opening brackets", text: () => "[".repeat(10 * 2 ** 20) },
  { it: "ten megabytes of brackets in an input", text: () => `{"input":{"a":${"[".repeat(10 * 2 ** 20 - 100)}` },
];

describe("hostile JSON is refused, and does not stall the server", () => {
  it.each(bodies)("$it", async ({ text }) => {
    const body = Buffer.from(text());
    const stalls: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const watched = new AbortController();
      const longest = watchHealth(watched.signal);
      const reply = await post(body);
      watched.abort();
      expect(reply.status, reply.text).toBe(400);
      expect(JSON.parse(reply.text).error).toMatch(/\S/);
      stalls.push(await longest);
      if (Math.min(...stalls) < stallMaxMs) break;
    }
    expect(Math.min(...stalls)).toBeLessThan(stallMaxMs);
  });

  it("leaves nothing behind: the endpoint has no jobs, and takes the next", async () => {
    expect((await call(server, "GET", `/v2/${endpoint}/health`)).body.jobs.inQueue).toBe(0);
    expect((await call(server, "POST", `/v2/${endpoint}/run`, { input: {} })).status).toBe(200);
  });
});

/** Calls `/healthz` again and again; resolves with the longest response time. */
async function watchHealth(signal: AbortSignal): Promise<number> {
  let longest = 0;
  while (!signal.aborted) {
    const askedAt = performance.now();
    await send("GET", "/healthz");
    longest = Math.max(longest, performance.now() - askedAt);
    await sleep(5);
  }
  return longest;
}

const post = (body: Buffer) => send("POST", `/v2/${endpoint}/run`, body);

function send(method: string, path: string, body?: Buffer): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${server.key}`, "content-length": body?.length ?? 0 };
    const sent = request(server.url + path, { method, headers, agent: false }, (reply) => {
      let text = "";
      reply.setEncoding("utf8").on("data", (part) => (text += part));
      reply.on("end", () => resolve({ status: reply.statusCode ?? 0, text }));
    });
    sent.on("error", reject).end(body);
  });
}
