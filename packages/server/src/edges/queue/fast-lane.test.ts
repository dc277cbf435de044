import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import type { MillraceEvent } from "../../events.js";
import { limits } from "../../limits/index.js";
import { Rates } from "../../rates.js";
import { type Answer, type Call, type Http, openHttp } from "../../testing/http-fixture.js";
import { Scene } from "../../testing/scene-fixture.js";
import { withTurns } from "../../testing/turns-fixture.js";

let scene: Scene;
let http: Http;
let endpoint: Endpoint;
const served: Extract<MillraceEvent, { type: "request.served" }>[] = [];
beforeAll(async () => {
  scene = await Scene.open();
  const emit = (event: MillraceEvent) => void (event.type === "request.served" && served.push(event));
  http = await openHttp(scene, { emit });
  endpoint = await scene.endpoint();
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

const run = () => `/v2/${endpoint.id}/run`;
const status = (jobId: string) => `/v2/${endpoint.id}/status/${jobId}`;

/** A reply without the values that differ between requests of the same kind. */
const alike = ({ status, headers, text }: Answer) => ({
  status,
  headers: [...headers.keys()],
  text: text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "uuid").replaceAll(/"(delayTime|queuePosition)":\d+/g, '"$1":n'),
});

describe("The fast lane answers as the routes do", () => {
  /** A query string that no route reads makes the request bypass the fast lane. */
  const bothWays = async (method: string, path: string, call: Call = {}): Promise<[Answer, Answer]> => [
    await http.call(method, path, call),
    await http.call(method, `${path}?x=1`, call),
  ];

  it.each<[string, Call]>([
    ["a job", { body: { input: { a: 1 } } }],
    [
      "a job with every field that a client may send",
      { body: { input: {}, webhook: "https://example.com/", policy: { ttl: 20_000 } } },
    ],
    ["a job with fields that nothing knows", { body: { input: {}, policy: { priority: 1 }, executionTimeout: 5_000 } }],
    ["a text that is not JSON", { body: "{" }],
    ["a body without input", { body: {} }],
    ["a body of no bytes", { body: "" }],
    ["no body", {}],
    ["invalid UTF-8", { body: new Uint8Array([0x7b, 0xff, 0x7d]) }],
    ["an unknown key", { body: { input: {} }, key: "mr_nobody" }],
    ["no key", { body: { input: {} }, key: null }],
    ["a body with a content encoding", { body: { input: {} }, headers: { "content-encoding": "gzip" } }],
    ["a caller's own request id", { body: { input: {} }, headers: { "x-request-id": "mine" } }],
    ["a body over the limit", { body: JSON.stringify({ input: { a: "a".repeat(limits.runBytesMax) } }) }],
    ["a body that is counted", { body: JSON.stringify({ input: { a: "a".repeat(limits.bodyBytesSmall) } }) }],
  ])("to %s", async (_, call) => {
    const [fast, routed] = await bothWays("POST", run(), call);
    expect(alike(fast)).toEqual(alike(routed));
    if (call.headers?.["x-request-id"]) expect(fast.headers.get("x-request-id")).toBe("mine");
  });

  it("for a job that waits, a job that has ended, and a job that never existed", async () => {
    const { id } = (await http.post(run(), { input: {} })).json;
    const waiting = await bothWays("GET", status(id));
    await http.post(`/v2/${endpoint.id}/cancel/${id}`);
    const ended = await bothWays("GET", status(id));
    const unknown = await bothWays("GET", status("00000000-0000-7000-8000-000000000000-u1"));
    for (const [fast, routed] of [waiting, ended, unknown]) expect(alike(fast)).toEqual(alike(routed));
    expect([waiting, ended, unknown].map(([fast]) => fast.status)).toEqual([200, 200, 404]);
    expect(ended[0].json.status).toBe("CANCELLED");
  });

  it("for an unknown endpoint, and on both prefixes", async () => {
    const [fast, routed] = await bothWays("POST", "/v2/aaaaaaaaaaaaaa/run", { body: { input: {} } });
    expect(alike(fast)).toEqual(alike(routed));
    const [sdk, sdkRouted] = await bothWays("POST", `/sdk${run()}`, { body: { input: {} } });
    expect(alike(sdk)).toEqual(alike(sdkRouted));
  });

  it("and its requests are counted under the same routes", async () => {
    served.length = 0;
    await bothWays("POST", run(), { body: { input: {} } });
    await bothWays("POST", run(), { body: "{" });
    await bothWays("GET", status("nobody"));
    await expect.poll(() => served.length).toBe(6);
    for (let n = 0; n < served.length; n += 2) {
      const [fast, routed] = served.slice(n, n + 2).map(({ durationMs: _, ...rest }) => rest);
      expect(fast).toEqual(routed);
    }
  });
});

describe("The fast lane", () => {
  it("shares the rate limits of the routes: requests admitted by either count for both", async () => {
    const other = await openHttp(scene, { rates: new Rates() });
    const one = await scene.endpoint();
    const post = (n: number) => other.post(`/v2/${one.id}/run${n % 2 ? "?x=1" : ""}`, { input: {} });
    const answers: Answer[] = [];
    while (answers.length < 1_000) answers.push(...(await Promise.all(Array.from({ length: 100 }, (_, n) => post(n)))));
    answers.push(await post(0));
    await other.close();
    expect(answers.slice(0, 1_000).every((answer) => answer.status === 200)).toBe(true);
    expect(answers[1_000]?.status).toBe(429);
    expect(answers[1_000]?.headers.get("retry-after")).toBeTruthy();
  });

  it("leaves a read-only key, and a key of other endpoints, to the routes that refuse them", async () => {
    await scene.addKey("mr_reader", scene.admin.ownerNo, { kind: "readOnly" });
    const access = { [(await scene.endpoint()).id]: "run" } as const;
    await scene.addKey("mr_elsewhere", scene.admin.ownerNo, { kind: "endpoints", access });
    expect((await http.post(run(), { input: {} }, { key: "mr_reader" })).status).toBe(401);
    expect((await http.get(status("nobody"), { key: "mr_reader" })).json.code).toBe("JOB_NOT_FOUND");
    expect((await http.post(run(), { input: {} }, { key: "mr_elsewhere" })).json.code).toBe("ENDPOINT_NOT_FOUND");
    expect((await http.post(run(), { input: {} }, { key: (await scene.stranger()).key })).status).toBe(404);
  });

  it("takes a body that comes in pieces, and requests that come in one piece", async () => {
    const body = '{"input":{"text":"é"}}';
    const head = `POST ${run()} HTTP/1.1\r\nhost: here\r\nauthorization: ${scene.key}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
    const socket = connect(http.port, "127.0.0.1");
    let said = "";
    socket.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
    const bytes = Buffer.from(body);
    socket.write(head);
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]));
      await new Promise((turn) => setImmediate(turn));
    }
    socket.write(head + body + head + body);
    await expect.poll(() => said.match(/"IN_QUEUE"/g)?.length).toBe(3);
    socket.destroy();
  });

  it("stores nothing if its key was revoked before the body was there", async () => {
    const { key, caller } = await scene.stranger();
    const { id: templateId } = await scene.template({ imageName: "handler:1" }, caller);
    const own = await scene.endpoint({ templateId }, caller);
    const socket = connect(http.port, "127.0.0.1");
    const body = '{"input":{}}';
    const head = [`POST /v2/${own.id}/run HTTP/1.1`, "host: x", "connection: close", `authorization: Bearer ${key}`];
    socket.write(`${[...head, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body.slice(0, 4)}`);
    await scene.settle();
    await scene.parts.registry.removeKey(caller);
    socket.end(body.slice(4));
    const reply = await text(socket);
    expect(reply).toMatch(/^HTTP\/1\.1 401 /);
    expect(reply).toMatch(/revoked, rotated or narrowed/);
    expect(await scene.health(own)).toMatchObject({ waiting: 0 });
  });

  it("stores nothing of a client that disconnects in the middle of its body", async () => {
    const one = await scene.endpoint();
    const head = `POST /v2/${one.id}/run HTTP/1.1\r\nhost: here\r\nauthorization: ${scene.key}\r\n`;
    const socket = connect(http.port, "127.0.0.1");
    await new Promise<void>((sent) => socket.write(`${head}content-length: 100\r\n\r\n{"input":{}}`, () => sent()));
    const closed = new Promise((done) => socket.once("close", done));
    socket.destroy();
    await closed;
    await http.post(`/v2/${one.id}/run`, { input: {} });
    expect((await http.get(`/v2/${one.id}/health`)).json.jobs.inQueue).toBe(1);
  });

  it("serves no request that is pipelined after an unfinished reply once the client disconnects", async () => {
    const rates = new Rates();
    const letIn: string[] = [];
    const emit = (event: MillraceEvent) => void (event.type === "request.served" && letIn.push(event.route));
    const other = await openHttp(scene, { rates, emit });
    const one = await scene.endpoint();
    const id = await scene.submit(one);
    const head = (path: string) =>
      `GET /v2/${one.id}/${path} HTTP/1.1\r\nhost: here\r\nauthorization: ${scene.key}\r\n\r\n`;
    const socket = connect(other.port, "127.0.0.1");
    const stream = head(`stream/${id}`).replace("\r\n\r\n", "\r\naccept: text/event-stream\r\n\r\n");
    // Events that go on for as long as the job waits.
    socket.write(stream + head(`status/${id}`).repeat(400));
    await once(socket, "data");
    socket.destroy();
    const free = Array.from({ length: 300 }, () => other.get(`/v2/${one.id}/status/${id}`));
    expect((await Promise.all(free)).filter(({ status }) => status !== 200)).toEqual([]);
    expect(letIn.filter((route) => route.includes("/status/"))).toHaveLength(300);
    await other.close();
  });

  it("refuses while the server stops", async () => {
    const other = await openHttp(scene, { draining: AbortSignal.abort() });
    const answer = await other.post(run(), { input: {} }).finally(other.close);
    expect([answer.status, answer.json.code]).toEqual([503, "UNAVAILABLE"]);
  });
});

it.each(["status", "status-sync"])(
  "Many small results are sent over many turns of the event loop: /%s",
  async (name) => {
    const { id } = (await http.call("POST", run(), { body: { input: {} } })).json;
    await http.call("POST", `/v2/${endpoint.id}/cancel/${id}`);
    const reading = http.call("GET", `/v2/${endpoint.id}/${name}/${id}`);
    const { value, waits } = await withTurns(() => reading);
    expect(value.json).toMatchObject({ id, status: "CANCELLED" });
    expect(waits).toBeGreaterThan(0);
  },
);
