import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Endpoint } from "../../../domain/endpoints/endpoint.js";
import { limits } from "../../../limits/index.js";
import { type Http, openHttp } from "../../../testing/http-fixture.js";
import { secretOf } from "../../../testing/scene-acts-fixture.js";
import { Scene } from "../../../testing/scene-fixture.js";
import { bodyBytesHeld, CountedBody, hangUpOnStalled } from "./body-account.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
let paths: Record<string, string>;
const clients: Socket[] = [];
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] }); // only the tests run the checks
  scene = await Scene.open();
  http = await openHttp(scene);
  endpoint = await scene.endpoint();
  const worker = await scene.worker(endpoint);
  const secret = secretOf(worker);
  paths = {
    "the fast lane": `/v2/${endpoint.id}/run`,
    "the routes": `/v2/${endpoint.id}/runsync`,
    OpenAI: `/v2/${endpoint.id}/openai/v1/chat/completions`,
    management: "/v1/templates",
    GraphQL: "/graphql",
    workers: `/v2/${endpoint.id}/job-done/${worker.row.id}/any?token=${secret}`,
  };
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await expect.poll(() => bodyBytesHeld("clients") + bodyBytesHeld("workers")).toBe(0);
});
afterAll(async () => {
  vi.useRealTimers();
  await http.close();
  await scene.close();
});

/** Sends the beginning of a body of 200 KB. */
function begin(path: string, bytes: number): Socket {
  const client = connect(http.port, "127.0.0.1");
  clients.push(client);
  const key = path.includes("token=") ? "" : `authorization: ${scene.key}\r\n`;
  client.write(`POST ${path} HTTP/1.1\r\nhost: here\r\n${key}content-length: 200000\r\n\r\n${" ".repeat(bytes)}`);
  return client;
}

const held = () => bodyBytesHeld("clients") + bodyBytesHeld("workers");
const names = ["the fast lane", "the routes", "OpenAI", "management", "GraphQL", "workers"];

describe("An incomplete body", () => {
  it.each(names)("counts its bytes in memory until its client disconnects: %s", async (name) => {
    const client = begin(paths[name]!, 100_000);
    await expect.poll(held).toBe(100_000);
    expect(bodyBytesHeld(name === "workers" ? "workers" : "clients")).toBe(100_000);
    client.destroy();
    await expect.poll(held).toBe(0);
  });

  it.each(names)("is given up once it stalls, and no longer counts: %s", async (name) => {
    const client = begin(paths[name]!, 100_000);
    const said = text(client);
    await expect.poll(held).toBe(100_000);
    for (let look = 0; look < 5; look++) hangUpOnStalled();
    client.write(" ");
    await expect.poll(held).toBe(100_001);
    for (let look = 0; look < 6; look++) hangUpOnStalled();
    expect(held()).toBe(100_001);
    hangUpOnStalled();
    expect(held()).toBe(0);
    expect(await said).toMatch(name === "workers" ? /^HTTP\/1.1 503 / : /^HTTP\/1.1 408 /);
  });

  /** Sends a body that stalls `at` a byte and is refused, and then the rest of it; returns the reply. */
  async function stall(path: string, body: string, at: number): Promise<string> {
    const client = connect({ port: http.port, host: "127.0.0.1", allowHalfOpen: true });
    clients.push(client);
    const key = path.includes("token=") ? "" : `authorization: ${scene.key}\r\n`;
    client.write(`POST ${path} HTTP/1.1\r\nhost: here\r\n${key}content-length: ${body.length}\r\n\r\n`);
    client.write(body.slice(0, at));
    await expect.poll(held).toBe(at);
    for (let look = 0; look < 7; look++) hangUpOnStalled();
    let said = "";
    client.on("data", (part) => {
      said += part;
    });
    await once(client, "end");
    client.end(body.slice(at));
    await once(client, "close");
    return said;
  }

  it.each(["run", "runsync"])("is not submitted once it was refused, even if the rest arrives: %s", async (route) => {
    const { id } = await scene.endpoint();
    const said = await stall(`/v2/${id}/${route}`, `{"input":{}}${" ".repeat(200_000)}`, 100_000);
    expect(said).toMatch(/^HTTP\/1.1 408 .*"code":"REQUEST_TIMEOUT"/s);
    await http.post(`/v2/${id}/run`, { input: {} });
    expect((await http.get(`/v2/${id}/health`)).json.jobs.inQueue).toBe(1);
  });

  it("settles no job once it was refused, but the worker's next attempt does", async () => {
    const worker = await scene.worker(endpoint);
    const id = await scene.running(endpoint, worker);
    const path = `/v2/${endpoint.id}/job-done/${worker.row.id}/${id}?token=${secretOf(worker)}`;
    const result = `{"output":"${"x".repeat(2 * limits.jsonTransferBytes)}"}`;
    expect(await stall(path, result, 1.5 * limits.jsonTransferBytes)).toMatch(/^HTTP\/1.1 503 .*"code":"UNAVAILABLE"/s);
    expect((await http.post(path, result, { key: null })).status).toBe(200);
    expect(await scene.state(endpoint, id)).toBe("COMPLETED");
  });

  it("does not count its first bytes, because most bodies are shorter than that", async () => {
    const body = new CountedBody({ headers: {} } as never, "clients", 1);
    expect([body.count(limits.bodyBytesFree), held()]).toEqual([true, 0]);
    expect([body.count(1), held()]).toEqual([true, limits.bodyBytesFree + 1]);
    body.release();
    expect(held()).toBe(0);
  });
});

describe("When too much is in memory", () => {
  it("bodies of one owner are read one by one, and none while one is about to be stored", () => {
    const part = (bytes: number) => {
      const body = new CountedBody({ headers: {} } as never, "clients", 1);
      expect(body.count(bytes)).toBe(true);
      return body;
    };
    const most = limits.bodiesBytesMax * limits.bodiesOwnerShare * limits.bodiesCrowdedShare;
    const [one, two] = [part(most - 5_000), part(5_000)];
    expect([one.manner, two.manner]).toEqual(["freely", "freely"]);
    expect(two.count(1)).toBe(true);
    expect(two.manner).toBe("one by one");
    one.end();
    expect(two.manner).toBe("not now");
    one.release();
    expect(two.manner).toBe("freely");
    two.release();
  });

  it("bodies of one owner wait for each other, and all are accepted", { timeout: 120_000 }, async () => {
    const body = Buffer.from(JSON.stringify({ input: { data: "x".repeat(8_000_000) } }));
    const count = Math.ceil((1.5 * limits.bodiesBytesMax * limits.bodiesOwnerShare) / body.length);
    const made = await Promise.all(Array.from({ length: count }, () => http.post(`/v2/${endpoint.id}/run`, body)));
    expect(made.filter(({ status }) => status !== 200)).toEqual([]);
  });

  /** Uses all but this many bytes of an owner's share. */
  function fill(ownerNo: number, bytes: number): CountedBody {
    const body = new CountedBody({ headers: {} } as never, "clients", ownerNo);
    expect(body.count(bytes)).toBe(true);
    return body;
  }
  const share = limits.bodiesOwnerShare * limits.bodiesBytesMax;

  it.each(names.slice(0, -1))("a body is refused for a second, but a small one is not: %s", async (name) => {
    const full = fill(scene.admin.ownerNo, share - 50_000);
    const refused = await http.post(paths[name]!, " ".repeat(200_000));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect((await http.post(`/v2/${endpoint.id}/run`, { input: {} })).status).toBe(200);
    expect(held()).toBe(share - 50_000);
    full.release();
  });

  it("because of one owner, another owner still has room", async () => {
    const full = fill(scene.admin.ownerNo, share);
    const { key } = await scene.stranger();
    const body = { input: { a: "a".repeat(100_000) } };
    expect((await http.post(paths["the fast lane"]!, body)).status).toBe(503);
    // The endpoint is not this owner's, but its body was read.
    expect((await http.post("/v1/templates", body, { key })).status).toBe(400);
    full.release();
    expect((await http.post(paths["the fast lane"]!, body)).status).toBe(200);
  });
});

it("A body that has ended never counts as stalled", async () => {
  const { id } = await scene.endpoint();
  const answer = http.post(`/v2/${id}/runsync`, { input: { a: "a".repeat(10_000) } });
  await expect.poll(async () => (await http.get(`/v2/${id}/health`)).json.jobs.inQueue).toBe(1);
  for (let look = 0; look < 20; look++) hangUpOnStalled();
  await http.post(`/v2/${id}/purge-queue`);
  expect((await answer).json.status).toBe("CANCELLED");
});
